"""What it costs to move control and dirty data between host and device: the edges of the plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch_pim.features.machines import LINE_BYTES
from torch_pim.features.placement import BufferVersion, PlacementProblem
from torch_pim.models.errors import PlacementError

Flush = Literal["serial", "bandwidth"]
"""`serial`: dirty lines are written back one after another; `bandwidth`: as fast as the memory takes them."""

OUTSIDE = -1
"""Stands for the program's caller, which is on the host, as producer of inputs and consumer of results."""


@dataclass(frozen=True, slots=True)
class FlushEdge:
    """One buffer version that must be written back once if it is produced on one side and read on the other.

    `producer` and `readers` are call indices or OUTSIDE. `host_ns` is paid when the host produced it and the device
    reads it, `device_ns` when the device produced it and the host reads it.
    """

    producer: int
    readers: tuple[int, ...]
    host_ns: float
    device_ns: float


def host_flush_ns(problem: PlacementProblem, nbytes: int, flush: Flush) -> float:
    """Write-back of a host-dirty buffer: at most the last-level cache can be dirty.

    Serial: lines x ns per line, walked by one core (PIMProf, Wei et al., 2022). Bandwidth: bytes / sustained bandwidth.
    """
    dirty = min(nbytes, problem.host.llc_bytes)
    if flush == "serial":
        return math.ceil(dirty / LINE_BYTES) * problem.device.flush_host_ns_per_line
    return dirty / (problem.host.dram_bandwidth_gb_s * problem.host.bandwidth_efficiency)


def device_flush_ns(problem: PlacementProblem, nbytes: int, flush: Flush) -> float:
    """Write-back of a device-dirty buffer: at most the L1 caches of all cores can be dirty.

    Serial: each core walks its own share of the lines, all cores at once. Bandwidth: bytes / sustained bandwidth.
    """
    device = problem.device
    dirty = min(nbytes, device.cores * device.l1_bytes)
    if flush == "serial":
        return math.ceil(math.ceil(dirty / LINE_BYTES) / device.cores) * device.flush_device_ns_per_line
    return dirty / (device.bandwidth_gb_s * device.bandwidth_efficiency)


def flush_edges(problem: PlacementProblem, flush: Flush) -> tuple[FlushEdge, ...]:
    """One edge per buffer version that can cross sides, in the order of `problem.buffers`.

    Inputs start on the host and versions that leave end there. The inputs together cannot be dirty beyond the
    last-level cache: each has its share of it. Weights are resident in memory that both sides share, with nothing
    dirty, so they have no edge.
    """
    if flush not in ("serial", "bandwidth"):
        raise PlacementError(f"flush mode {flush!r}: expected 'serial' or 'bandwidth'")
    inputs = sum(v.nbytes for v in problem.buffers if v.producer == OUTSIDE and v.role != "weight")
    dirty_share = min(1.0, problem.host.llc_bytes / inputs) if inputs else 1.0
    edges: list[FlushEdge] = []
    for version in problem.buffers:
        _check_calls(problem, version)
        if version.role == "weight" and version.producer == OUTSIDE:
            continue
        readers = tuple(c for c in version.consumers if c != version.producer)
        if version.leaves and version.producer != OUTSIDE:
            readers = (*readers, OUTSIDE)
        if readers:
            host_bytes = math.ceil(version.nbytes * dirty_share) if version.producer == OUTSIDE else version.nbytes
            edges.append(
                FlushEdge(
                    version.producer,
                    readers,
                    host_flush_ns(problem, host_bytes, flush),
                    device_flush_ns(problem, version.nbytes, flush),
                )
            )
    return tuple(edges)


def _check_calls(problem: PlacementProblem, version: BufferVersion) -> None:
    for call in (version.producer, *version.consumers):
        if not OUTSIDE <= call < len(problem.calls) or (call == OUTSIDE and call in version.consumers):
            raise PlacementError(
                f"buffer version {version.identity} names call {call}: expected an index below {len(problem.calls)}, "
                "or -1 as the producer of inputs and weights"
            )
