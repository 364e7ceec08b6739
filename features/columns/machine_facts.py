"""Host, device and nest side by side, with the rates that their features share."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.features.analysis.facts import NestFacts
from torch_pim.features.machines import DeviceSpec, HostSpec


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """A host, a device, and the nest that is to run on one of them."""

    host: HostSpec
    device: DeviceSpec
    nest: NestFacts

    @property
    def host_bandwidth(self) -> float:
        """Sustained, in bytes per ns."""
        return self.host.dram_bandwidth_gb_s * self.host.bandwidth_efficiency

    @property
    def device_bandwidth(self) -> float:
        return self.device.bandwidth_gb_s * self.device.bandwidth_efficiency

    @property
    def host_lanes(self) -> float:
        """SIMD lanes of all cores times clock: f32 operations per ns, one per lane and cycle."""
        return self.host.cores * self.host.simd_lanes_f32 * self.host.clock_ghz

    @property
    def device_lanes(self) -> float:
        return self.device.cores * self.device.simd_lanes_f32 * self.device.clock_ghz

    @property
    def host_miss_rate(self) -> float:
        """Lines per ns that all cores together can have in flight over the latency of one."""
        return self.host.cores * self.host.outstanding_misses / self.host.dram_latency_ns

    @property
    def device_miss_rate(self) -> float:
        latency = self.device.dram_closed_ns + self.device.remote_hop_ns
        return self.device.cores * self.device.outstanding_misses / latency

    def parallelism(self, cores: int) -> float:
        """Cores that have work when the parallel range is split evenly."""
        return min(cores, max(1, self.nest.parallel_trip)) if self.nest.nest.partitionable else 1

    def imbalance(self, cores: int) -> float:
        """Work of the busiest core over the mean over the busy ones: ceil(n / busy) * busy / n."""
        trips = max(1, self.nest.parallel_trip) if self.nest.nest.partitionable else 1
        busy = min(cores, trips)
        return -(-trips // busy) * busy / trips
