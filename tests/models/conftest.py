"""Machines, nests and problems with round numbers, for hand-computed expectations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import Access, Buffer, Loop, LoopNest, Operation
from torch_pim.features.placement import BufferVersion, NestCall, PlacementProblem
from torch_pim.features.profile import HostProfile
from torch_pim.models.testing import stream_nest

HOST = HostSpec(
    name="round-host", cores=8, clock_ghz=3.0, issue_width=4, simd_lanes_f32=8,
    l1_bytes=32 * 1024, l1_ways=8, l1_latency_cycles=4, l2_bytes=256 * 1024, l2_ways=8, l2_latency_cycles=12,
    llc_bytes=16 * 2**20, llc_ways=16, llc_latency_cycles=40, dram_latency_ns=80, dram_bandwidth_gb_s=40,
    bandwidth_efficiency=0.8, outstanding_misses=10, fork_join_ns=2000,
)  # fmt: skip
DEVICE = DeviceSpec(
    name="round-device", cores=64, clock_ghz=1.0, simd_lanes_f32=4, outstanding_misses=4,
    cycles_int_add=1, cycles_int_multiply=3, cycles_int_divide=20, cycles_float_add=3, cycles_float_multiply=4,
    cycles_float_divide=15, cycles_transcendental=25, l1_bytes=32 * 1024, l1_ways=8, l1_latency_cycles=4,
    dram_hit_ns=16.8, dram_closed_ns=30.4, dram_conflict_ns=44.0, vaults=32, vault_bandwidth_gb_s=10,
    bandwidth_efficiency=0.8, remote_hop_ns=25, refresh_overhead=0.0205, launch_ns=2000, switch_ns=2000,
    flush_host_ns_per_line=60, flush_device_ns_per_line=30, capacity_bytes=8 * 2**30,
    supported_types=("f32", "i32", "i64", "i8", "i1", "index"),
)  # fmt: skip


@pytest.fixture
def host() -> HostSpec:
    return HOST


@pytest.fixture
def device() -> DeviceSpec:
    return DEVICE


def matmul_nest(rows: int, columns: int, inner: int, *, name: str = "matmul") -> LoopNest:
    """`C[i, j] = sum_k A[i, k] * B[k, j]`, the fill of C included."""
    a = Access(0, "load", "f32", 2, ((0, 4 * inner), (2, 4)))
    b = Access(1, "load", "f32", 2, ((1, 4), (2, 4 * columns)))
    c = Access(2, "load", "f32", 2, ((0, 4 * columns), (1, 4)))
    store = Access(2, "store", "f32", 2, ((0, 4 * columns), (1, 4)))
    fill = Access(2, "store", "f32", 1, ((0, 4 * columns), (1, 4)))
    return LoopNest(
        name=name,
        loops=(Loop("parallel", rows, -1), Loop("parallel", columns, 0), Loop("sequential", inner, 1)),
        parallel_rank=2,
        accesses=(fill, a, b, c, store),
        operations=(Operation("multiply", "f32", 2, 1.0), Operation("add", "f32", 2, 1.0)),
        buffers=(
            Buffer("f32", (rows, inner), True, False, 4 * rows * inner),
            Buffer("f32", (inner, columns), True, False, 4 * inner * columns),
            Buffer("f32", (rows, columns), True, True, 4 * rows * columns),
        ),
        kind="compute",
        partitionable=True,
        code_hash=f"{name}-{rows}-{columns}-{inner}",
    )


class MakeProblem(Protocol):
    def __call__(
        self,
        nests: Sequence[LoopNest],
        calls: Sequence[int] | None = None,
        buffers: Sequence[BufferVersion] = (),
        profiles: Sequence[HostProfile | None] | None = None,
        host: HostSpec = HOST,
        device: DeviceSpec = DEVICE,
    ) -> PlacementProblem: ...


@pytest.fixture
def make_problem() -> MakeProblem:
    def build(
        nests: Sequence[LoopNest],
        calls: Sequence[int] | None = None,
        buffers: Sequence[BufferVersion] = (),
        profiles: Sequence[HostProfile | None] | None = None,
        host: HostSpec = HOST,
        device: DeviceSpec = DEVICE,
    ) -> PlacementProblem:
        order = range(len(nests)) if calls is None else calls
        return PlacementProblem(
            nests=tuple(nests),
            calls=tuple(NestCall(nest, f"call{i}:{nests[nest].name}") for i, nest in enumerate(order)),
            buffers=tuple(buffers),
            profiles=tuple(profiles) if profiles is not None else (None,) * len(nests),
            host=host,
            device=device,
        )

    return build


@pytest.fixture
def make_copy() -> Callable[..., LoopNest]:
    return stream_nest


@pytest.fixture
def make_matmul() -> Callable[..., LoopNest]:
    return matmul_nest
