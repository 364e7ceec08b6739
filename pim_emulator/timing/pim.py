"""Time of tuned PIM code: in-order cores with a private cache beside the vaults of a stacked DRAM."""

from __future__ import annotations

import numpy as np

from torch_pim.features.machines import DeviceSpec
from torch_pim.pim_emulator.timing.dram import (
    bank_interference,
    busiest_vault_ns,
    imbalance_at,
    queueing_ns,
    row_latency_ns,
)
from torch_pim.pim_emulator.timing.nest_time import Floats, NestTime, nest_times
from torch_pim.pim_emulator.timing.table import NestTable
from torch_pim.pim_emulator.timing.traffic import PACKED_SEQUENTIAL, check_cache, tuned_traffic
from torch_pim.pim_emulator.timing.vectors import lane_factor, loads_of_tuned_code

INTERLEAVED_CHAINS = 4.0
"""Independent operations that tuned code keeps in flight: an operation of latency c costs 1 + (c - 1) / 4 cycles."""

LOOP_INSTRUCTIONS = 0.5
"""Loop overhead per innermost iteration: two instructions, unrolled four times."""

PACKED_ROW_HITS = 0.75 * PACKED_SEQUENTIAL
"""Row hits of blocked code: three of the four lines of a 256-byte row, as far as it walks along tiles."""

BISECTIONS = 48


def device_times(table: NestTable, device: DeviceSpec) -> tuple[NestTime, ...]:
    """Isolated times on all cores that get iterations; a nest that is not partitionable runs on one."""
    return nest_times(_times(table, device))


def _times(table: NestTable, device: DeviceSpec) -> dict[str, Floats]:
    used = np.minimum(device.cores, np.maximum(1.0, table.iterations))
    # The slowest core has the largest block of iterations.
    working = np.maximum(1.0, table.iterations / np.ceil(np.maximum(1.0, table.iterations) / used))
    check_cache(f"device {device.name}", "l1_bytes", device.l1_bytes)
    traffic = tuned_traffic(table, device.l1_bytes, device.cores)
    compute_cycles, load_cycles = _cycles(table, device)
    compute = compute_cycles / device.clock_ghz / working
    l1 = load_cycles / device.clock_ghz / working
    core = compute + l1

    blocked = traffic.blocked_share
    hits = (1.0 - blocked) * table.row_hit_share + blocked * PACKED_ROW_HITS
    refresh = 1.0 + device.refresh_overhead
    unloaded = row_latency_ns(hits, bank_interference(working, device), device) * refresh
    remote = 1.0 - 1.0 / device.vaults
    unloaded = unloaded + remote * device.remote_hop_ns
    imbalance = (1.0 - blocked) * imbalance_at(table.vault_imbalance, device)
    imbalance = imbalance + blocked * imbalance_at(table.footprint_imbalance, device)
    bandwidth = busiest_vault_ns(traffic.fetched + traffic.written_back, imbalance, device) * refresh
    misses = traffic.fetched / working / device.outstanding_misses

    def body(latency: Floats) -> Floats:
        memory = misses * latency
        overlapped = np.maximum(core, memory) + np.minimum(core, memory) / device.outstanding_misses
        result: Floats = np.maximum(overlapped, bandwidth)
        return result

    # The longer the nest takes, the emptier the vaults and the shorter the queues: one time fits its own queues.
    low, high = body(unloaded), body(unloaded + queueing_ns(np.ones_like(core), device))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        longer = body(_loaded(unloaded, bandwidth, middle, device)) > middle
        low, high = np.where(longer, middle, low), np.where(longer, high, middle)
    launch = np.full_like(core, device.offload_ns)
    zero = np.zeros_like(core)
    return {
        "compute_ns": compute,
        "l1_ns": l1,
        "l2_ns": zero,
        "llc_ns": zero,
        "dram_latency_ns": misses * _loaded(unloaded, bandwidth, high, device),
        "bandwidth_ns": bandwidth,
        "launch_ns": launch,
        "flush_ns": zero,
        "total_ns": launch + high,
        "cores_used": used,
    }


def _loaded(unloaded: Floats, bandwidth: Floats, time: Floats, device: DeviceSpec) -> Floats:
    """Latency of one line when the nest takes `time`, of which the busiest vault is busy for `bandwidth`."""
    return unloaded + queueing_ns(bandwidth / np.maximum(time, 1e-9), device)


def _cycles(table: NestTable, device: DeviceSpec) -> tuple[Floats, Floats]:
    """Cycles of one core that does everything: issue and arithmetic, and the latency of L1 hits that shows."""

    def cost(latency: float) -> float:
        return 1.0 + (latency - 1.0) / INTERLEAVED_CHAINS

    lanes = lane_factor(table, device.simd_lanes_f32)
    loads = loads_of_tuned_code(table)
    adds = table.float_adds + table.macs
    multiplies = table.float_multiplies + table.macs
    vectorised = (
        loads
        + table.stores
        + adds * cost(device.cycles_float_add)
        + multiplies * cost(device.cycles_float_multiply)
        + table.divides * device.cycles_float_divide
        + table.transcendentals * device.cycles_transcendental
        + table.integer_adds * cost(device.cycles_int_add)
        + table.integer_multiplies * cost(device.cycles_int_multiply)
        + table.integer_divides * device.cycles_int_divide
        + LOOP_INSTRUCTIONS * table.loop_iterations * cost(device.cycles_int_add)
        + table.branches
    )
    compute = vectorised * lanes + table.addresses * cost(device.cycles_int_add)
    exposed: Floats = loads * (cost(device.l1_latency_cycles) - 1.0) * lanes
    return compute, exposed
