"""The feature vector: golden values, and laws that hold for every nest."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.features.nest import Access, Buffer, Loop, LoopNest, Operation
from torch_pim.features.profile import LOCALITY_BYTES, HostProfile
from torch_pim.features.random_machines import random_machines
from torch_pim.features.schema import Schema
from torch_pim.features.specs import load_device, load_host
from torch_pim.features.vector import (
    FEATURE_VERSION,
    machine_columns,
    machine_values,
    nest_columns,
    nest_values,
    profile_columns,
    profile_values,
)

HOST, DEVICE = load_host("cpu-8c"), load_device("ndp-hmc-64")
PROFILE = HostProfile(
    code_hash="c",
    host_id="h",
    origin="simulated",
    wall_time_ns=1e6,
    instructions=4e7,
    loads=1e7,
    stores=5e6,
    l1_misses=1e6,
    l2_misses=5e5,
    llc_misses=2.5e5,
    dram_bytes=3.2e7,
    ipc=2.0,
    locality_curve=tuple(2.0**-i for i in range(len(LOCALITY_BYTES))),
)
COLUMNS = (*nest_columns(), *profile_columns(), *machine_columns())


def named(columns, values) -> dict[str, float]:
    return {column.name: value for column, value in zip(columns, values, strict=True)}


def of_nest(nest: LoopNest) -> dict[str, float]:
    return named(nest_columns(), nest_values(nest))


@pytest.mark.parametrize("name", ["matmul", "gather", "softmax", "transpose"])
def test_golden_vectors(nest_of, golden, name):
    nest = nest_of(name)
    values = (*nest_values(nest), *profile_values(PROFILE, nest), *machine_values(HOST, DEVICE, nest))
    lines = [f"{c.name:<40} {v:>12.6f} {c.unit}" for c, v in zip(COLUMNS, values, strict=True)]
    golden(f"features/vector_{name}.txt", "\n".join(lines))


def test_columns_are_distinct_described_floats():
    schema = Schema(FEATURE_VERSION, COLUMNS)
    assert len(schema.names) == len(set(schema.names))
    for column in COLUMNS:
        assert column.dtype == "float64"
        assert column.unit
        assert column.description.endswith(".")


def test_values_by_hand(nest_of):
    values = of_nest(nest_of("matmul"))
    iterations = 256 * 128 * 512
    assert values["log_parallel_trip"] == math.log2(1 + 256 * 128)
    assert values["log_iterations"] == math.log2(1 + iterations)
    assert values["log_inner_trip"] == math.log2(513)
    assert (values["loop_depth"], values["loop_count"], values["parallel_rank"]) == (3, 3, 2)
    assert (values["add_per_iteration"], values["multiply_per_iteration"], values["divide_per_iteration"]) == (1, 1, 0)
    assert values["log_flops"] == math.log2(1 + 2 * iterations)
    assert values["stores_per_iteration"] == pytest.approx(1 + 1 / 512)
    assert values["log_footprint_bytes"] == math.log2(1 + 4 * (256 * 512 + 512 * 128 + 256 * 128))
    assert values["contraction_share"] == 1.0
    assert values["log_contraction_large"] == math.log2(257)
    machine = named(machine_columns(), machine_values(HOST, DEVICE, nest_of("matmul")))
    assert machine["log_bandwidth_ratio"] == pytest.approx(math.log2(320 * 0.79 / (38.4 * 0.8)))
    assert machine["log_lane_ratio"] == pytest.approx(math.log2(64 * 4 * 1 / (8 * 8 * 3)))
    assert (machine["host_busy_share"], machine["device_imbalance"]) == (1.0, 1.0)


def test_imbalance_and_busy_cores(nest_of):
    machine = named(machine_columns(), machine_values(HOST, DEVICE, nest_of("branches")))  # 100 iterations
    assert machine["device_imbalance"] == pytest.approx(2 * 64 / 100)
    assert machine["host_imbalance"] == pytest.approx(13 * 8 / 100)
    residue = named(machine_columns(), machine_values(HOST, DEVICE, nest_of("scatter")))
    assert residue["device_busy_share"] == pytest.approx(1 / 64)


def test_every_nest_on_every_machine_is_finite(nest_of, nest_names):
    machines = [(HOST, DEVICE), *random_machines(3, 5)]
    for name in nest_names:
        nest = nest_of(name)
        concrete = nest.at(dict.fromkeys(nest.symbols, 48))
        values = [*nest_values(concrete)]
        for host, device in machines:
            values += machine_values(host, device, concrete)
        assert all(math.isfinite(value) for value in values), name


def test_profile_values(nest_of):
    values = named(profile_columns(), profile_values(PROFILE, nest_of("matmul")))
    assert [values[f"profile_is_{origin}"] for origin in ("perf", "wall", "simulated", "none")] == [0, 0, 1, 0]
    assert values["profile_log_wall_time"] == math.log2(1 + 1e6)
    assert values["profile_log_mpki"] == math.log2(1 + 6.25)
    assert values["profile_lfmr"] == 0.25
    assert values["profile_log_bandwidth"] == math.log2(33)
    assert values["profile_misses_32k"] == math.log2(1 + 500)


def test_missing_profile_is_nan_but_for_its_origin(nest_of):
    values = named(profile_columns(), profile_values(None, nest_of("matmul")))
    flags = {name: value for name, value in values.items() if name.startswith("profile_is_") and "warm" not in name}
    assert flags == {"profile_is_perf": 0, "profile_is_wall": 0, "profile_is_simulated": 0, "profile_is_none": 1}
    assert all(math.isnan(value) for name, value in values.items() if name not in flags)


def test_wall_profile_leaves_counters_nan(nest_of):
    wall = HostProfile("c", "h", "wall", wall_time_ns=100.0)
    values = named(profile_columns(), profile_values(wall, nest_of("matmul")))
    assert values["profile_log_wall_time"] == math.log2(101)
    assert math.isnan(values["profile_lfmr"])
    assert math.isnan(values["profile_misses_16k"])


def test_names_hashes_and_origins_of_a_nest_play_no_part(nest_of, nest_names):
    for name in nest_names:
        nest = nest_of(name)
        if not nest.symbols:
            other = replace(
                nest, name="x", code_hash="y", aten_operators=("aten.mm",), call_sites=("layer",), multiplicity=9
            )
            assert nest_values(other) == nest_values(nest)
            assert machine_values(HOST, DEVICE, other) == machine_values(HOST, DEVICE, nest)
    renamed = replace(HOST, name="other", sources={})
    assert machine_values(renamed, DEVICE, nest_of("matmul")) == machine_values(HOST, DEVICE, nest_of("matmul"))


def test_order_of_accesses_operations_and_buffers_plays_no_part(nest_of, nest_names):
    for name in nest_names:
        nest = nest_of(name)
        if nest.symbols:
            continue
        last = len(nest.buffers) - 1
        mirrored = replace(
            nest,
            accesses=tuple(replace(a, buffer=last - a.buffer) for a in nest.accesses[::-1]),
            operations=nest.operations[::-1],
            buffers=nest.buffers[::-1],
        )
        assert nest_values(mirrored) == pytest.approx(nest_values(nest), rel=1e-12, abs=1e-12), name


def stream(length: int, arrays: int, element: str = "f32") -> LoopNest:
    """Sum of arrays: element-wise addition into the last one."""
    size = {"f32": 4, "f64": 8, "f16": 2}[element]
    accesses = [Access(i, "load", element, 0, ((0, size),)) for i in range(arrays - 1)]
    accesses.append(Access(arrays - 1, "store", element, 0, ((0, size),)))
    buffers = [Buffer(element, (length,), i < arrays - 1, i == arrays - 1, length * size) for i in range(arrays)]
    operations = (Operation("add", element, 0, float(arrays - 2)),)
    loops = (Loop("parallel", length, -1),)
    return LoopNest("stream", loops, 1, tuple(accesses), operations, tuple(buffers), "compute", True, "")


@given(length=st.integers(1, 10**7), arrays=st.integers(2, 6))
def test_streams_scale(length, arrays):
    """Twice the length: twice the counts and bytes, the same shares and ratios."""
    one, two = of_nest(stream(length, arrays)), of_nest(stream(2 * length, arrays))
    for name in (
        "log_parallel_trip",
        "log_iterations",
        "log_loads",
        "log_stores",
        "log_footprint_bytes",
        "log_stored_bytes",
    ):
        assert 2.0 ** two[name] - 1 == pytest.approx(2 * (2.0 ** one[name] - 1))
    for name in ("add_per_iteration", "loads_per_iteration", "log_flops_per_byte", "log_reuse", "stored_share"):
        assert two[name] == pytest.approx(one[name])
    assert one["log_reuse"] == 1.0  # every byte once
    assert one["stride_unit_share"] == 1.0
    assert one["vectorised_share"] == 1.0


@given(length=st.integers(64, 10**6), element=st.sampled_from(["f16", "f32", "f64"]))
def test_streams_miss_once_per_line_in_any_cache(length, element):
    nest = stream(length, 3, element)
    values = of_nest(nest)
    size = {"f16": 2, "f32": 4, "f64": 8}[element]
    per_access = -(-length * size // 64) / length
    for cache in ("32k", "256k", "2048k", "16384k"):
        assert values[f"fitted_misses_{cache}"] == pytest.approx(math.log2(1 + 1000 * per_access), rel=1e-6)


@given(length=st.integers(0, 1000))
def test_logarithms_and_shares_are_not_negative(length):
    for column, value in zip(nest_columns(), nest_values(stream(length, 3)), strict=True):
        assert value >= 0, column.name
        if column.unit in ("share", "flag"):
            assert value <= 1, column.name
