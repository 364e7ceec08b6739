"""Features of a host profile; NaN for all that was not measured, so that trees can tell it from zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch_pim.features.analysis.facts import NestFacts
from torch_pim.features.columns.feature import Feature, feature, log2_1p
from torch_pim.features.profile import LOCALITY_BYTES, ORIGINS, HostProfile, Origin


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """A profile beside the nest that it was taken of."""

    profile: HostProfile | None
    nest: NestFacts


def _measured(
    name: str, unit: str, description: str, value: Callable[[HostProfile, NestFacts], float]
) -> Feature[ProfileFacts]:
    return feature(name, unit, description, lambda f: math.nan if f.profile is None else value(f.profile, f.nest))


def _origin(origin: Origin) -> Feature[ProfileFacts]:
    return feature(
        f"profile_is_{origin}",
        "flag",
        f"The profile's origin is `{origin}`" + (", or there is no profile." if origin == "none" else "."),
        lambda f: ("none" if f.profile is None else f.profile.origin) == origin,
    )


def _locality(position: int) -> Feature[ProfileFacts]:
    size = LOCALITY_BYTES[position] // 1024
    return _measured(
        f"profile_misses_{size}k",
        "log2(1+permille)",
        f"Misses per thousand accesses of the traced nest in a cache of {size} KiB.",
        lambda p, _: log2_1p(1000.0 * p.locality_curve[position]),
    )


def _divide(numerator: float, denominator: float) -> float:
    """NaN where either is not measured, or where there is nothing to divide by."""
    return numerator / denominator if denominator > 0 else math.nan


PROFILE_FEATURES: tuple[Feature[ProfileFacts], ...] = (
    *(_origin(origin) for origin in ORIGINS),
    _measured("profile_log_wall_time", "log2(1+ns)", "Wall time of the nest.", lambda p, _: log2_1p(p.wall_time_ns)),
    _measured("profile_is_warm", "flag", "The wall time is of repeated runs on warm caches.", lambda p, _: p.warm),
    _measured(
        "profile_log_time_per_iteration",
        "log2(1+ps)",
        "Wall time per innermost iteration.",
        lambda p, n: log2_1p(1000.0 * _divide(p.wall_time_ns, n.iterations)),
    ),
    _measured(
        "profile_log_bandwidth",
        "log2(1+GB/s)",
        "DRAM bytes over wall time.",
        lambda p, _: log2_1p(_divide(p.dram_bytes, p.wall_time_ns)),
    ),
    _measured("profile_ipc", "per cycle", "Instructions per cycle.", lambda p, _: p.ipc),
    _measured(
        "profile_log_instructions_per_iteration",
        "log2(1+count)",
        "Instructions per innermost iteration.",
        lambda p, n: log2_1p(_divide(p.instructions, n.iterations)),
    ),
    _measured(
        "profile_log_mpki", "log2(1+count)", "Last-level misses per 1000 instructions.", lambda p, _: log2_1p(p.mpki)
    ),
    _measured("profile_lfmr", "ratio", "Last-level misses over first-level misses.", lambda p, _: p.lfmr),
    _measured(
        "profile_l1_misses",
        "log2(1+permille)",
        "First-level misses per thousand loads and stores.",
        lambda p, _: log2_1p(1000.0 * _divide(p.l1_misses, p.loads + p.stores)),
    ),
    _measured(
        "profile_l2_miss_ratio",
        "ratio",
        "Second-level over first-level misses.",
        lambda p, _: _divide(p.l2_misses, p.l1_misses),
    ),
    _measured(
        "profile_log_dram_bytes", "log2(1+bytes)", "Bytes moved to and from DRAM.", lambda p, _: log2_1p(p.dram_bytes)
    ),
    _measured(
        "profile_log_dram_per_footprint",
        "log2(1+ratio)",
        "DRAM bytes over the footprint: how often memory is fetched again.",
        lambda p, n: log2_1p(_divide(p.dram_bytes, n.footprint.touched_bytes)),
    ),
    *(_locality(position) for position in range(len(LOCALITY_BYTES))),
)
