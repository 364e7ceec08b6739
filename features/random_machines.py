"""Randomised hosts and devices for training, so that a model is not lost on a machine that it has never seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import ELEMENT_BYTES

_KIB, _MIB = 1024, 1024 * 1024

HOST_RANGES: Mapping[str, tuple[float, float]] = {
    "cores": (1, 32),
    "clock_ghz": (2.0, 4.5),
    "l1_latency_cycles": (3, 5),
    "l2_latency_cycles": (10, 16),
    "llc_latency_cycles": (30, 70),
    "dram_latency_ns": (50, 120),
    "dram_bandwidth_gb_s": (19.2, 307.2),
    "bandwidth_efficiency": (0.6, 0.95),
    "outstanding_misses": (6, 24),
    "fork_join_ns": (500, 8000),
}
DEVICE_RANGES: Mapping[str, tuple[float, float]] = {
    "cores": (12, 256),
    "clock_ghz": (0.5, 2.5),
    "cycles_int_add": (1, 1.5),
    "cycles_int_multiply": (2, 6),
    "cycles_int_divide": (10, 35),
    "cycles_float_add": (2, 6),
    "cycles_float_multiply": (3, 7),
    "cycles_float_divide": (8, 30),
    "cycles_transcendental": (12, 60),
    "l1_latency_cycles": (2, 5),
    "dram_hit_ns": (10, 28),
    "vault_bandwidth_gb_s": (4, 24),
    "bandwidth_efficiency": (0.6, 0.95),
    "remote_hop_ns": (8, 60),
    "refresh_overhead": (0.01, 0.09),
    "launch_ns": (500, 10_000),
    "switch_ns": (500, 10_000),
    "flush_host_ns_per_line": (2, 80),
    "flush_device_ns_per_line": (1, 40),
}
"""Bounds of the fields that are drawn log-uniformly; core and miss counts are rounded to integers."""

HOST_MENUS: Mapping[str, tuple[int, ...]] = {
    "issue_width": (2, 4, 6),
    "simd_lanes_f32": (4, 8, 16),
    "l1_bytes": (16 * _KIB, 32 * _KIB, 64 * _KIB),
    "l2_bytes": (256 * _KIB, 512 * _KIB, 1 * _MIB),
    "llc_bytes": (2 * _MIB, 4 * _MIB, 8 * _MIB, 16 * _MIB, 32 * _MIB, 64 * _MIB),
}
DEVICE_MENUS: Mapping[str, tuple[int, ...]] = {
    "simd_lanes_f32": (1, 2, 4, 8),
    "outstanding_misses": (1, 2, 4, 8),
    "l1_bytes": (16 * _KIB, 32 * _KIB, 64 * _KIB),
    "vaults": (16, 32, 64),
}
"""Fields that are drawn uniformly from a list. Few cache sizes, so that a trace is simulated for few caches."""

ROW_STEP_NS = (7.0, 20.0)
"""Bounds of one row activation or precharge: a closed row costs one of them over a hit, a conflict costs two."""

NEARNESS = 1.25
"""A core count within this factor of an excluded one is excluded too."""

Machines = tuple[HostSpec, DeviceSpec]


def random_machines(
    seed: int,
    count: int,
    *,
    excluded_host_cores: tuple[int, ...] = (16,),
    excluded_device_cores: tuple[int, ...] = (64,),
) -> tuple[Machines, ...]:
    """`count` pairs of a host and a device; the same seed gives the same pairs, and a longer list starts with them.

    Core counts within a factor of NEARNESS of an excluded one are never drawn, so that the presets with those counts
    (by default cpu-16c and the 64-core devices) can be used as unseen machines. Raises ValueError when the exclusions
    leave no core count.
    """
    if count < 0:
        raise ValueError(f"count is {count}; expected zero or more machines")
    host_cores = _cores("host", HOST_RANGES["cores"], excluded_host_cores)
    device_cores = _cores("device", DEVICE_RANGES["cores"], excluded_device_cores)
    pairs = []
    for index in range(count):
        generator = np.random.default_rng([seed, index])
        tag = f"{seed}-{index}"
        pairs.append((_host(generator, tag, host_cores), _device(generator, tag, device_cores)))
    return tuple(pairs)


def _host(generator: np.random.Generator, tag: str, cores: tuple[int, ...]) -> HostSpec:
    real = _log_uniform(generator, HOST_RANGES)
    pick = _menu(generator, HOST_MENUS)
    return HostSpec(
        name=f"random-host-{tag}",
        cores=_log_choice(generator, cores),
        clock_ghz=real("clock_ghz"),
        issue_width=pick("issue_width"),
        simd_lanes_f32=pick("simd_lanes_f32"),
        l1_bytes=pick("l1_bytes"),
        l1_ways=8,
        l1_latency_cycles=real("l1_latency_cycles"),
        l2_bytes=pick("l2_bytes"),
        l2_ways=8,
        l2_latency_cycles=real("l2_latency_cycles"),
        llc_bytes=pick("llc_bytes"),
        llc_ways=16,
        llc_latency_cycles=real("llc_latency_cycles"),
        dram_latency_ns=real("dram_latency_ns"),
        dram_bandwidth_gb_s=real("dram_bandwidth_gb_s"),
        bandwidth_efficiency=real("bandwidth_efficiency"),
        outstanding_misses=round(real("outstanding_misses")),
        fork_join_ns=real("fork_join_ns"),
        sources=_drawn(HostSpec),
    )


def _device(generator: np.random.Generator, tag: str, cores: tuple[int, ...]) -> DeviceSpec:
    real = _log_uniform(generator, DEVICE_RANGES)
    pick = _menu(generator, DEVICE_MENUS)
    hit = real("dram_hit_ns")
    step = float(generator.uniform(*ROW_STEP_NS))
    return DeviceSpec(
        name=f"random-device-{tag}",
        cores=_log_choice(generator, cores),
        clock_ghz=real("clock_ghz"),
        simd_lanes_f32=pick("simd_lanes_f32"),
        outstanding_misses=pick("outstanding_misses"),
        cycles_int_add=real("cycles_int_add"),
        cycles_int_multiply=real("cycles_int_multiply"),
        cycles_int_divide=real("cycles_int_divide"),
        cycles_float_add=real("cycles_float_add"),
        cycles_float_multiply=real("cycles_float_multiply"),
        cycles_float_divide=real("cycles_float_divide"),
        cycles_transcendental=real("cycles_transcendental"),
        l1_bytes=pick("l1_bytes"),
        l1_ways=8,
        l1_latency_cycles=real("l1_latency_cycles"),
        dram_hit_ns=hit,
        dram_closed_ns=_four_digits(hit + step),
        dram_conflict_ns=_four_digits(hit + 2 * step),
        vaults=pick("vaults"),
        vault_bandwidth_gb_s=real("vault_bandwidth_gb_s"),
        bandwidth_efficiency=real("bandwidth_efficiency"),
        remote_hop_ns=real("remote_hop_ns"),
        refresh_overhead=real("refresh_overhead"),
        launch_ns=real("launch_ns"),
        switch_ns=real("switch_ns"),
        flush_host_ns_per_line=real("flush_host_ns_per_line"),
        flush_device_ns_per_line=real("flush_device_ns_per_line"),
        capacity_bytes=32 * 1024 * _MIB,
        supported_types=tuple(ELEMENT_BYTES),
        sources=_drawn(DeviceSpec),
    )


def _cores(kind: str, bounds: tuple[float, float], excluded: tuple[int, ...]) -> tuple[int, ...]:
    counts = range(int(bounds[0]), int(bounds[1]) + 1)
    kept = tuple(c for c in counts if not any(e / NEARNESS <= c <= e * NEARNESS for e in excluded))
    if not kept:
        raise ValueError(f"excluding {excluded} leaves no {kind} core count between {counts[0]} and {counts[-1]}")
    return kept


def _log_choice(generator: np.random.Generator, counts: tuple[int, ...]) -> int:
    """One of the counts, with weight 1/count, which is log-uniform over them."""
    weights = 1.0 / np.asarray(counts, dtype=np.float64)
    return int(generator.choice(counts, p=weights / weights.sum()))


def _log_uniform(generator: np.random.Generator, ranges: Mapping[str, tuple[float, float]]) -> Callable[[str], float]:
    def draw(field: str) -> float:
        low, high = ranges[field]
        return _four_digits(math.exp(generator.uniform(math.log(low), math.log(high))))

    return draw


def _four_digits(value: float) -> float:
    """Rounded, so that the last bit of a mathematics library cannot change a specification's digest."""
    return float(f"{value:.4g}")


def _menu(generator: np.random.Generator, menus: Mapping[str, tuple[int, ...]]) -> Callable[[str], int]:
    return lambda field: int(generator.choice(menus[field]))


def _drawn(kind: type[HostSpec] | type[DeviceSpec]) -> Mapping[str, str]:
    names = [name for name in kind.__dataclass_fields__ if name not in ("name", "sources")]
    return dict.fromkeys(names, "assumed: drawn at random for training")
