"""What a value of a machine specification may be: ranges of single fields, and relations between fields."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from torch_pim.features.machines import LINE_BYTES, DeviceSpec, HostSpec
from torch_pim.features.nest import ELEMENT_BYTES

MAY_BE_ZERO = frozenset({
    "fork_join_ns", "remote_hop_ns", "launch_ns", "switch_ns", "flush_host_ns_per_line", "flush_device_ns_per_line",
    "refresh_overhead",
})  # fmt: skip
"""Costs that a machine may not have; every other number must be positive."""

SHARES = {"bandwidth_efficiency": "above 0 and at most 1", "refresh_overhead": "at least 0 and below 1"}
"""Fields that are a share of one, with the range that they may take."""


def number_problem(field: str, value: float) -> str | None:
    """What is wrong with one number, as `expected ...`; None when nothing is."""
    if not math.isfinite(value):
        return "expected a finite number"
    if field in SHARES and not ((0 <= value < 1) if field in MAY_BE_ZERO else (0 < value <= 1)):
        return f"expected a share {SHARES[field]}"
    if value < 0 or (value == 0 and field not in MAY_BE_ZERO):
        return "expected zero or more" if field in MAY_BE_ZERO else "expected more than zero"
    return None


def relation_problems(spec: HostSpec | DeviceSpec) -> Iterator[tuple[str, str]]:
    """Yields (field, what is wrong and how to mend it) for values that do not go together."""
    for level in ("l1", "l2", "llc"):
        if hasattr(spec, f"{level}_ways"):
            yield from _sets_problem(level, getattr(spec, f"{level}_bytes"), getattr(spec, f"{level}_ways"))
    if isinstance(spec, HostSpec):
        yield from _ascending_problem(spec, ("l1_bytes", "l2_bytes", "llc_bytes"))
        yield from _ascending_problem(spec, ("l1_latency_cycles", "l2_latency_cycles", "llc_latency_cycles"))
    else:
        yield from _ascending_problem(spec, ("dram_hit_ns", "dram_closed_ns", "dram_conflict_ns"))
        yield from _types_problem(spec.supported_types)


def _sets_problem(level: str, size: int, ways: int) -> Iterator[tuple[str, str]]:
    if size % (ways * LINE_BYTES):
        yield (
            f"{level}_ways",
            f"{ways} ways of {LINE_BYTES}-byte lines do not divide {level}_bytes = {size}; "
            f"expected {level}_bytes to be a multiple of ways x {LINE_BYTES}",
        )


def _ascending_problem(spec: HostSpec | DeviceSpec, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for lower, upper in itertools.pairwise(names):
        low, high = getattr(spec, lower), getattr(spec, upper)
        if low > high:
            yield upper, f"{high} is below {lower} = {low}; expected {' <= '.join(names)}"


def _types_problem(types: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not types:
        yield "supported_types", "the list is empty; expected at least one element type, e.g. 'f32'"
    if len(set(types)) != len(types):
        yield "supported_types", "a type is named twice; name each once"
    for name in types:
        if name not in ELEMENT_BYTES:
            yield "supported_types", f"unknown element type {name!r}; expected some of {', '.join(ELEMENT_BYTES)}"
