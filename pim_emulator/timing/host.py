"""Time of tuned host code: out-of-order cores with SIMD and private caches, a shared hashed LLC and DRAM channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_pim.features.machines import LINE_BYTES, HostSpec
from torch_pim.pim_emulator.timing.nest_time import Floats, NestTime, nest_times
from torch_pim.pim_emulator.timing.table import NestTable
from torch_pim.pim_emulator.timing.traffic import PACKED_SEQUENTIAL, check_cache, tuned_traffic
from torch_pim.pim_emulator.timing.vectors import lane_factor, loads_of_tuned_code

DIVIDE_CYCLES = 5.0
"""Cycles between two vector divisions or square roots. Assumed, in the range of published x86 instruction tables."""

TRANSCENDENTAL_OPERATIONS = 20.0
"""Arithmetic instructions of one exp, tanh, erf ...: range reduction and a polynomial. Assumed."""

CONTRACTION_EFFICIENCY = 0.75
"""Share of the multiply-add peak that register-blocked, packed code reaches. Assumed."""

LOOP_INSTRUCTIONS = 0.5
"""Loop overhead per innermost iteration: two instructions, unrolled four times."""

RANDOM_OVERLAP = 0.6
"""Share of the outstanding misses that misses without a sequential neighbour keep in flight. Assumed."""

SERIAL_CALL_NS = 200.0
"""Call of a compiled nest on one core. Assumed."""


@dataclass(frozen=True, slots=True)
class HostEvents:
    """What hardware counters of the host would show, per execution of the whole nest, one entry per nest."""

    instructions: Floats
    loads: Floats
    """Load instructions; one vector load counts once."""
    stores: Floats
    l1_misses: Floats
    l2_misses: Floats
    llc_misses: Floats
    dram_bytes: Floats


@dataclass(frozen=True, slots=True)
class _Levels:
    """Lines fetched by each level (no more than by the one before), and written back by the last."""

    l1: Floats
    l2: Floats
    llc: Floats
    written_back: Floats
    blocked_share: Floats


def host_times(table: NestTable, host: HostSpec) -> tuple[NestTime, ...]:
    """Isolated times; a nest runs on all cores or, where that is faster, on one."""
    serial = _times(table, host, 1)
    if host.cores == 1:
        return nest_times(serial)
    parallel = _times(table, host, host.cores)
    faster = parallel["total_ns"] < serial["total_ns"]
    return nest_times({name: np.where(faster, parallel[name], serial[name]) for name in serial})


def host_events(table: NestTable, host: HostSpec) -> HostEvents:
    """Events of the tuned code on all cores."""
    levels = _levels(table, host, host.cores)
    _, instructions = _cycles_and_instructions(table, host)
    lanes = lane_factor(table, host.simd_lanes_f32)
    loads, stores = loads_of_tuned_code(table) * lanes, table.stores * lanes
    return HostEvents(instructions, loads, stores, levels.l1, levels.l2, levels.llc, _dram_bytes(levels))


def _times(table: NestTable, host: HostSpec, cores: int) -> dict[str, Floats]:
    """Arrays named like the fields of NestTime, for code on `cores` cores."""
    used = np.minimum(cores, np.maximum(1.0, table.iterations))
    # The slowest core has the largest block of iterations.
    working = table.iterations / np.ceil(np.maximum(1.0, table.iterations) / used)
    working = np.maximum(1.0, working)
    levels = _levels(table, host, cores)
    cycles, _ = _cycles_and_instructions(table, host)
    sequential = (1.0 - levels.blocked_share) * table.sequential_share + levels.blocked_share * PACKED_SEQUENTIAL
    overlap = host.outstanding_misses * (RANDOM_OVERLAP + (1.0 - RANDOM_OVERLAP) * sequential)
    cycle_ns = 1.0 / host.clock_ghz
    compute = cycles * cycle_ns / working
    l2_ns = (levels.l1 - levels.l2) * host.l2_latency_cycles * cycle_ns / overlap / working
    llc_ns = (levels.l2 - levels.llc) * host.llc_latency_cycles * cycle_ns / overlap / working
    dram = levels.llc * host.dram_latency_ns / overlap / working
    # bytes / (GB/s) = ns
    bandwidth = _dram_bytes(levels) / (host.dram_bandwidth_gb_s * host.bandwidth_efficiency)
    launch = np.where(used > 1, host.fork_join_ns, SERIAL_CALL_NS)
    body = np.maximum.reduce([compute + l2_ns, l2_ns + llc_ns + dram, bandwidth])
    zero = np.zeros_like(body)
    return {
        "compute_ns": compute,
        "l1_ns": zero,
        "l2_ns": l2_ns,
        "llc_ns": llc_ns,
        "dram_latency_ns": dram,
        "bandwidth_ns": bandwidth,
        "launch_ns": launch,
        "flush_ns": zero,
        "total_ns": launch + body,
        "cores_used": used,
    }


def _dram_bytes(levels: _Levels) -> Floats:
    return (levels.llc + levels.written_back) * LINE_BYTES


def _levels(table: NestTable, host: HostSpec, cores: int) -> _Levels:
    for name in ("l1_bytes", "l2_bytes", "llc_bytes"):
        check_cache(f"host {host.name}", name, getattr(host, name))
    l1 = tuned_traffic(table, host.l1_bytes, cores).fetched
    l2 = np.minimum(l1, tuned_traffic(table, host.l2_bytes, cores).fetched)
    shared = tuned_traffic(table, host.llc_bytes, 1)
    llc = np.minimum(l2, shared.fetched)
    return _Levels(l1, l2, llc, np.minimum(llc, shared.written_back), shared.blocked_share)


def _cycles_and_instructions(table: NestTable, host: HostSpec) -> tuple[Floats, Floats]:
    """Busy cycles of one core that does everything, and vector instructions.

    Half of the issue width are arithmetic ports, half are load ports, a quarter is the store port; the busiest of
    them, the divider or the issue of all instructions limits the core.
    """
    lanes = lane_factor(table, host.simd_lanes_f32)
    loads = loads_of_tuned_code(table)
    arithmetic = (
        table.float_adds
        + table.float_multiplies
        + TRANSCENDENTAL_OPERATIONS * table.transcendentals
        + table.integer_adds
        + table.integer_multiplies
        + table.macs / CONTRACTION_EFFICIENCY
    )
    divides = table.divides + table.integer_divides
    scalar = LOOP_INSTRUCTIONS * table.loop_iterations + table.branches
    instructions = (loads + table.stores + arithmetic + divides + scalar) * lanes + table.addresses
    width = float(host.issue_width)
    cycles = np.maximum.reduce([
        arithmetic * lanes / (width / 2),
        loads * lanes / (width / 2),
        table.stores * lanes / (width / 4),
        divides * DIVIDE_CYCLES * lanes,
        instructions / width,
    ])  # fmt: skip
    return cycles, instructions
