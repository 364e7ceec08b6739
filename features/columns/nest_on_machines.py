"""Features of the nest against both machines: work per core, balance, fit in caches, and what a launch costs."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch_pim.features.columns.feature import Feature, feature, log2_1p, ratio
from torch_pim.features.columns.machine_facts import MachineFacts


def _for_both(
    name: str, unit: str, description: str, value: Callable[[MachineFacts, int], float]
) -> tuple[Feature[MachineFacts], ...]:
    """The same feature for the cores of the host and of the device."""
    return (
        feature(f"host_{name}", unit, f"{description} of the host.", lambda f: value(f, f.host.cores)),
        feature(f"device_{name}", unit, f"{description} of the device.", lambda f: value(f, f.device.cores)),
    )


def _intensity(f: MachineFacts) -> float:
    """Floating-point operations per touched byte."""
    return ratio(f.nest.flops, f.nest.footprint.touched_bytes)


def _footprint_over(f: MachineFacts, size: float) -> float:
    return log2_1p(f.nest.footprint.touched_bytes) - math.log2(size)


NEST_ON_MACHINE_FEATURES: tuple[Feature[MachineFacts], ...] = (
    *_for_both(
        "log_iterations_per_core",
        "log2(1+count)",
        "Innermost iterations per busy core",
        lambda f, cores: log2_1p(f.nest.iterations / f.parallelism(cores)),
    ),
    *_for_both(
        "busy_share", "share", "Cores that the parallel range keeps busy", lambda f, cores: f.parallelism(cores) / cores
    ),
    *_for_both(
        "imbalance",
        "ratio",
        "Iterations of the busiest core over the mean of the busy cores",
        lambda f, cores: f.imbalance(cores),
    ),
    feature(
        "host_log_footprint_per_llc",
        "log2(ratio)",
        "Footprint over the host's last-level cache.",
        lambda f: _footprint_over(f, f.host.llc_bytes),
    ),
    feature(
        "host_log_footprint_per_l2",
        "log2(ratio)",
        "Footprint over the second-level caches of the busy host cores.",
        lambda f: _footprint_over(f, f.host.l2_bytes * f.parallelism(f.host.cores)),
    ),
    feature(
        "device_log_footprint_per_l1",
        "log2(ratio)",
        "Footprint over the caches of the busy device cores.",
        lambda f: _footprint_over(f, f.device.l1_bytes * f.parallelism(f.device.cores)),
    ),
    feature(
        "host_log_intensity_per_balance",
        "log2(1+ratio)",
        "Arithmetic intensity over the host's machine balance.",
        lambda f: log2_1p(_intensity(f) * f.host_bandwidth / f.host_lanes),
    ),
    feature(
        "device_log_intensity_per_balance",
        "log2(1+ratio)",
        "Arithmetic intensity over the device's machine balance.",
        lambda f: log2_1p(_intensity(f) * f.device_bandwidth / f.device_lanes),
    ),
    feature(
        "log_stream_time_per_launch",
        "log2(1+ratio)",
        "Time to stream the footprint from the host's memory over the cost of a launch.",
        lambda f: log2_1p(f.nest.footprint.touched_bytes / f.host_bandwidth / max(1.0, f.device.launch_ns)),
    ),
)
