"""Components of the device's time: in-order cores with an L1 each, beside the vaults of a stacked memory."""

from __future__ import annotations

from torch_pim.features.machines import LINE_BYTES, DeviceSpec
from torch_pim.features.nest import LoopNest
from torch_pim.models.cost_model.blocking import lanes
from torch_pim.models.cost_model.body import Body, bodies
from torch_pim.models.cost_model.host_side import LOOP_INSTRUCTIONS, UNROLL, streaming_share
from torch_pim.models.cost_model.parallelism import busy_cores, used_cores
from torch_pim.models.cost_model.traffic import Traffic, traffic

ROW_HITS_OF_STREAMS = 0.75
"""Row-buffer hits of a pure stream: three of the four lines of a 256-byte row of HMC."""


def operation_cycles(device: DeviceSpec, kind: str) -> float:
    """Cycles of one operation on an in-order core; roots cost a division, all else an integer addition."""
    return {
        "add": device.cycles_float_add,
        "multiply": device.cycles_float_multiply,
        "fused": device.cycles_float_add + device.cycles_float_multiply,
        "divide": device.cycles_float_divide,
        "square_root": device.cycles_float_divide,
        "transcendental": device.cycles_transcendental,
    }.get(kind, device.cycles_int_add)


def compute_ns(nest: LoopNest, device: DeviceSpec) -> float:
    """Operations times their cycles, one after another, vectorisable bodies over SIMD lanes, over the busy cores."""
    cycles = sum(_cycles(nest, body, device) for body in bodies(nest))
    return cycles / device.clock_ghz / busy_cores(nest, device.cores)


def _cycles(nest: LoopNest, body: Body, device: DeviceSpec) -> float:
    cycles = sum(
        count * operation_cycles(device, kind)
        for kind, count in body.operations.items()
        if kind != "address" or body.irregular
    )
    # Half of the hit latency is hidden by the scheduling of loads ahead of their use.
    cycles += body.loads * (1.0 + device.l1_latency_cycles) / 2.0 + body.stores
    cycles += body.iterations * LOOP_INSTRUCTIONS / UNROLL * device.cycles_int_add
    return cycles / lanes(nest, body.loop, body.accesses, device.simd_lanes_f32, device.cores)


def miss_latency_ns(nest: LoopNest, device: DeviceSpec) -> float:
    """Mean time of one L1 miss: row hit, closed row or row conflict, hop to another vault, transfer of a line."""
    hits = ROW_HITS_OF_STREAMS * streaming_share(nest)
    row = hits * device.dram_hit_ns + (1.0 - hits) * (device.dram_closed_ns + device.dram_conflict_ns) / 2.0
    remote = 1.0 - 1.0 / device.vaults
    return row + remote * device.remote_hop_ns + LINE_BYTES / device.vault_bandwidth_gb_s


def latency_ns(nest: LoopNest, device: DeviceSpec) -> float:
    """L1 misses times their latency, over the outstanding misses of the busy cores; refresh included."""
    lines = _traffic(nest, device).fetched
    misses_in_turn = lines / device.outstanding_misses / busy_cores(nest, device.cores)
    # However many cores and miss registers there are, one miss takes its whole latency.
    return max(misses_in_turn, min(lines, 1.0)) * miss_latency_ns(nest, device) * (1.0 + device.refresh_overhead)


def bandwidth_ns(nest: LoopNest, device: DeviceSpec) -> float:
    """Bytes between the L1 caches and all vaults, over the bandwidth that they sustain; refresh included."""
    sustained = device.bandwidth_gb_s * device.bandwidth_efficiency
    return _traffic(nest, device).nbytes / sustained * (1.0 + device.refresh_overhead)


def _traffic(nest: LoopNest, device: DeviceSpec) -> Traffic:
    return traffic(nest, device.l1_bytes, used_cores(nest, device.cores))
