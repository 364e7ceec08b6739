"""What the cost model says about one nest, and the time-ratio features made from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch_pim.features.schema import FeatureColumn


@dataclass(frozen=True, slots=True)
class SideTimes:
    """Nanoseconds of one side by component; they overlap into `total_ns` as `combine` says."""

    total_ns: float
    compute_ns: float
    latency_ns: float
    bandwidth_ns: float
    overhead_ns: float

    @property
    def bound(self) -> str:
        """The largest component in words: compute, memory latency, memory bandwidth or launch overhead."""
        parts = {
            "compute": self.compute_ns,
            "memory latency": self.latency_ns,
            "memory bandwidth": self.bandwidth_ns,
            "launch overhead": self.overhead_ns,
        }
        return max(parts, key=lambda name: parts[name])


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Isolated times of one nest with cold caches, launch included."""

    host: SideTimes
    """From the specification alone, also where there is a profile."""
    device: SideTimes
    host_ns: float
    """Host time to decide by: the own estimate, drawn towards the profile where there is one."""
    profiled: bool
    """True when a profile's wall time went into `host_ns`."""

    @property
    def device_ns(self) -> float:
        return self.device.total_ns

    @property
    def log_time_ratio(self) -> float:
        """ln(host_ns / device_ns): above zero the device is faster."""
        return math.log(self.host_ns / self.device_ns)

    @property
    def static_log_time_ratio(self) -> float:
        """Natural logarithm of the ratio of both own estimates: the same with and without a profile."""
        return math.log(self.host.total_ns / self.device.total_ns)


SMALLEST_NS = 1.0
"""Added to components before their logarithm, so that a component of zero has one."""

_RATIO_COLUMNS = (
    FeatureColumn("static_log_time_ratio", "float64", "ln", "host over device time, both from specifications alone"),
    FeatureColumn("log_time_ratio", "float64", "ln", "host over device time, host drawn towards its profile"),
    FeatureColumn("log_device_compute_ratio", "float64", "ln", "device compute time over host time"),
    FeatureColumn("log_device_latency_ratio", "float64", "ln", "device miss-latency time over host time"),
    FeatureColumn("log_device_bandwidth_ratio", "float64", "ln", "device bandwidth time over host time"),
    FeatureColumn("log_device_overhead_ratio", "float64", "ln", "device launch time over host time"),
    FeatureColumn("log_host_compute_share", "float64", "ln", "host compute time over host time"),
    FeatureColumn("log_host_latency_share", "float64", "ln", "host miss-latency time over host time"),
    FeatureColumn("log_host_bandwidth_share", "float64", "ln", "host bandwidth time over host time"),
    FeatureColumn("log_host_time", "float64", "ln ns", "host time"),
    FeatureColumn("log_device_time", "float64", "ln ns", "device time"),
)


def ratio_columns() -> tuple[FeatureColumn, ...]:
    """Columns of `ratio_values`, in order."""
    return _RATIO_COLUMNS


def ratio_values(estimate: CostEstimate) -> tuple[float, ...]:
    """Logarithms of times over the host time: what lets trees carry over to machines they have not seen."""
    base = math.log(estimate.host_ns + SMALLEST_NS)

    def over_host(time_ns: float) -> float:
        return math.log(time_ns + SMALLEST_NS) - base

    host, device = estimate.host, estimate.device
    return (
        estimate.static_log_time_ratio,
        estimate.log_time_ratio,
        over_host(device.compute_ns),
        over_host(device.latency_ns),
        over_host(device.bandwidth_ns),
        over_host(device.overhead_ns),
        over_host(host.compute_ns),
        over_host(host.latency_ns),
        over_host(host.bandwidth_ns),
        math.log(estimate.host_ns),
        math.log(estimate.device_ns),
    )
