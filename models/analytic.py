"""The two-sided roofline (after Williams, Waterman, Patterson, 2009): arithmetic intensity against machine balance."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.features.analysis.footprint import nest_footprint
from torch_pim.features.analysis.work import data_operations
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest

HOST_OPERATIONS_PER_LANE = 4.0
"""Two fused multiply-adds per lane and cycle: assumed for every host."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """Both rooflines of one nest."""

    intensity: float
    """Operations per byte that must move at least: everything loaded once and stored once."""
    host_balance: float
    """Operations per byte at which the host passes from memory-bound to compute-bound."""
    device_balance: float
    host_ns: float
    device_ns: float
    """Launch included."""


def roofline(nest: LoopNest, host: HostSpec, device: DeviceSpec) -> Roofline:
    """Compares peak rates and sustained bandwidths of both sides for a concrete nest, all caches perfect."""
    iterations = max(1, nest.parallel_trip)
    operations = data_operations(nest, floating=True) + data_operations(nest, floating=False)
    footprint = nest_footprint(nest)
    moved = footprint.touched_bytes + footprint.stored_bytes
    host_peak = host.clock_ghz * host.simd_lanes_f32 * HOST_OPERATIONS_PER_LANE
    mean_cycles = (device.cycles_float_add + device.cycles_float_multiply) / 2.0
    device_peak = device.clock_ghz * device.simd_lanes_f32 / mean_cycles
    host_bandwidth = host.dram_bandwidth_gb_s * host.bandwidth_efficiency
    device_bandwidth = device.bandwidth_gb_s * device.bandwidth_efficiency
    host_compute_ns = operations / (host_peak * min(host.cores, iterations))
    device_compute_ns = operations / (device_peak * min(device.cores, iterations))
    return Roofline(
        intensity=operations / moved if moved else 0.0,
        host_balance=host_peak * host.cores / host_bandwidth,
        device_balance=device_peak * device.cores / device_bandwidth,
        host_ns=max(host_compute_ns, moved / host_bandwidth),
        device_ns=max(device_compute_ns, moved / device_bandwidth) + device.offload_ns,
    )
