"""The cost model: times of both sides from a nest's record, the specifications and, where there is one, a profile."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.profile import HostProfile
from torch_pim.models.cost_model import device_side, host_side
from torch_pim.models.cost_model.combine import device_total, host_total
from torch_pim.models.cost_model.constants import FROM_SPECS, CostConstants
from torch_pim.models.cost_model.estimate import CostEstimate, SideTimes

COST_MODEL_VERSION = 2
"""Raised with every change of a formula: models that were trained on the old estimates must not see the new ones."""

FourParts = tuple[float, float, float, float]
"""Compute, latency, bandwidth, overhead."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """Closed forms with multiplicative constants. Estimates are of one execution with cold caches, launch included."""

    constants: CostConstants = FROM_SPECS

    def host_times(self, nest: LoopNest, host: HostSpec) -> SideTimes:
        """Host time of a concrete nest by component, from the specification alone."""
        parts = (
            host_side.compute_ns(nest, host),
            host_side.latency_ns(nest, host),
            host_side.bandwidth_ns(nest, host),
            host_side.overhead_ns(nest, host),
        )
        scaled = _scaled(parts, self.constants.host)
        return SideTimes(float(host_total(*scaled)), *scaled)

    def device_times(self, nest: LoopNest, device: DeviceSpec) -> SideTimes:
        """Device time of a concrete nest by component, on all of its cores."""
        parts = (
            device_side.compute_ns(nest, device),
            device_side.latency_ns(nest, device),
            device_side.bandwidth_ns(nest, device),
            device.offload_ns,
        )
        scaled = _scaled(parts, self.constants.device)
        return SideTimes(float(device_total(*scaled, float(device.outstanding_misses))), *scaled)

    def estimate(
        self, nest: LoopNest, host: HostSpec, device: DeviceSpec, profile: HostProfile | None = None
    ) -> CostEstimate:
        """Both sides of a concrete nest; raises UnboundSymbolError for a symbolic one.

        With a usable profile the host time is exp(w ln(wall time) + (1 - w) ln(own estimate)), w = profile_weight.
        """
        own = self.host_times(nest, host)
        wall_ns = usable_wall_time_ns(profile, nest, host)
        if wall_ns is None:
            return CostEstimate(own, self.device_times(nest, device), own.total_ns, profiled=False)
        weight = self.constants.profile_weight
        drawn = math.exp(weight * math.log(wall_ns) + (1.0 - weight) * math.log(own.total_ns))
        return CostEstimate(own, self.device_times(nest, device), drawn, profiled=True)


def _scaled(parts: FourParts, factors: FourParts) -> FourParts:
    a, b, c, d = (part * factor for part, factor in zip(parts, factors, strict=True))
    return a, b, c, d


def usable_wall_time_ns(profile: HostProfile | None, nest: LoopNest, host: HostSpec) -> float | None:
    """Wall time of a profile of this very host, if it was measured.

    A warm time is not used for a nest that fits the last-level cache: an estimate is of cold caches.
    """
    if profile is None or profile.host_id != host.identity:
        return None
    if not (math.isfinite(profile.wall_time_ns) and profile.wall_time_ns > 0):
        return None
    if profile.warm and host_side.fits_last_level(nest, host):
        return None
    return profile.wall_time_ns
