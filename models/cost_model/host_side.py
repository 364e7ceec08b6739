"""Components of the host's time: an out-of-order multicore with vector units, three cache levels and prefetching."""

from __future__ import annotations

from torch_pim.features.analysis.footprint import nest_footprint
from torch_pim.features.analysis.strides import stride_shares
from torch_pim.features.machines import LINE_BYTES, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.models.cost_model.blocking import lanes
from torch_pim.models.cost_model.body import Body, bodies
from torch_pim.models.cost_model.parallelism import busy_cores, used_cores
from torch_pim.models.cost_model.traffic import traffic

FP_UNITS, LOAD_PORTS, STORE_PORTS = 2.0, 2.0, 1.0
"""Vector instructions per cycle of an x86 core with AVX2 (Fog, instruction tables): assumed for every host."""
UNIT_CYCLES = {"divide": 5.0, "square_root": 6.0, "transcendental": 20.0}
"""Cycles that one vector instruction (or polynomial) blocks a floating-point unit; everything else takes one."""
LOOP_INSTRUCTIONS, UNROLL = 2.0, 4.0
"""Counter and branch of a loop, and how many iterations share them."""
CONTRACTION_EFFICIENCY = 0.75
"""Share of peak that packed and tiled matrix products reach: assumed."""
IRREGULAR_OVERLAP = 0.6
"""Share of the miss registers that accesses without a pattern keep busy; streams keep all of them: assumed."""
CALL_NS = 100.0
"""Cost of calling a nest on one core: assumed."""


def compute_ns(nest: LoopNest, host: HostSpec) -> float:
    """The busiest of floating-point units, ports and issue slots, body by body, over the busy cores."""
    cycles = sum(_cycles(nest, body, host) for body in bodies(nest))
    return cycles / host.clock_ghz / busy_cores(nest, host.cores)


def _cycles(nest: LoopNest, body: Body, host: HostSpec) -> float:
    arithmetic = issued = 0.0
    for kind, count in body.operations.items():
        if kind == "address" and not body.irregular:
            continue  # strength-reduced to pointer increments or folded into the access
        slots = UNIT_CYCLES.get(kind, 1.0)
        issued += count * slots
        if kind not in ("address", "branch", "logic", "compare", "select"):
            arithmetic += count * slots
    issued += body.loads + body.stores + body.iterations * LOOP_INSTRUCTIONS / UNROLL
    cycles = max(arithmetic / FP_UNITS, body.loads / LOAD_PORTS, body.stores / STORE_PORTS, issued / host.issue_width)
    if body.contraction:
        cycles /= CONTRACTION_EFFICIENCY
    return cycles / lanes(nest, body.loop, body.accesses, host.simd_lanes_f32, host.cores)


def latency_ns(nest: LoopNest, host: HostSpec) -> float:
    """Misses of each level times the latency of the next one, over the outstanding misses of the busy cores."""
    cores = used_cores(nest, host.cores)
    l1 = traffic(nest, host.l1_bytes, cores).fetched
    l2 = min(l1, traffic(nest, host.l2_bytes, cores).fetched)
    llc = min(l2, traffic(nest, host.llc_bytes, 1).fetched)
    waited = (l1 - l2) * host.l2_latency_cycles / host.clock_ghz
    waited += (l2 - llc) * host.llc_latency_cycles / host.clock_ghz
    waited += llc * host.dram_latency_ns
    overlapped = host.outstanding_misses * (IRREGULAR_OVERLAP + (1.0 - IRREGULAR_OVERLAP) * streaming_share(nest))
    # However many cores and miss registers there are, one miss takes its whole latency.
    return max(waited / overlapped / busy_cores(nest, host.cores), min(llc, 1.0) * host.dram_latency_ns)


def bandwidth_ns(nest: LoopNest, host: HostSpec) -> float:
    """Bytes that pass between last-level cache and DRAM, over the bandwidth that streams reach."""
    return traffic(nest, host.llc_bytes, 1).nbytes / (host.dram_bandwidth_gb_s * host.bandwidth_efficiency)


def overhead_ns(nest: LoopNest, host: HostSpec) -> float:
    """Starting and joining the threads, or just the call where one core does it all."""
    threads = nest.partitionable and host.cores > 1 and nest.parallel_trip > 1
    return CALL_NS + (host.fork_join_ns if threads else 0.0)


def streaming_share(nest: LoopNest) -> float:
    """Share of accesses whose next address is the same or the neighbour of the last one."""
    shares = stride_shares(nest)
    return shares["unit"] + shares["invariant"]


def fits_last_level(nest: LoopNest, host: HostSpec) -> bool:
    """True where the next execution of the nest could find all of its data in the last-level cache."""
    return nest_footprint(nest).lines * LINE_BYTES <= host.llc_bytes
