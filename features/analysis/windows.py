"""Distinct elements and cache lines that one address pattern touches.

A pattern is a sum of arithmetic progressions, one for each loop: base + sum of stride_l * i_l with 0 <= i_l < trip_l.
Progressions that overlap or continue each other are merged, so that sliding windows and contiguous rows count once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch_pim.features.machines import LINE_BYTES

Step = tuple[int, int]
"""(stride in bytes, number of steps) of one progression."""


@dataclass(frozen=True, slots=True)
class Extents:
    """How much a pattern touches; both may be expectations, hence fractions."""

    elements: float
    lines: float


NOTHING = Extents(0.0, 0.0)


def touched(steps: Iterable[Step], element_bytes: int, alignment: int = LINE_BYTES) -> Extents:
    """Elements and lines of the sum of the given progressions from a start at any multiple of `alignment` bytes.

    A progression whose stride is a multiple of the one below, and reaches no further than its end, extends it:
    {s0*i} + {m*s0*j} covers t0 + m*(t - 1) points when m <= t0. Runs that start at multiples of g bytes cover
    1 + (span - g) / 64 lines on average; elements are aligned to their size and never lie on two lines.
    """
    levels = _merged(steps, element_bytes)
    elements = math.prod(count for _, count in levels)
    if elements == 0:
        return NOTHING
    span, runs, grain = element_bytes, 1, math.gcd(LINE_BYTES, alignment)
    reach = element_bytes
    for stride, count in levels:
        reach += stride * (count - 1)
        if count > 1 and stride > LINE_BYTES:
            runs *= count
            grain = math.gcd(grain, stride)
        else:
            span += stride * (count - 1)
    whole = -(-span // grain) * grain
    lines = runs * (1 + (whole - grain) / LINE_BYTES)
    longest = reach + LINE_BYTES - math.gcd(LINE_BYTES, alignment)
    return Extents(elements, min(lines, elements, -(-longest // LINE_BYTES)))


def _merged(steps: Iterable[Step], element_bytes: int) -> list[Step]:
    """Progressions by ascending stride, none of them overlapping the next.

    Two that overlap without one being a multiple of the other become points spread evenly over their reach, as many
    as there are sums, and at most one on each multiple of the greatest common divisor.
    """
    together: dict[int, int] = {}
    for stride, count in steps:
        if count == 0:
            return [(element_bytes, 0)]
        together[stride] = together.get(stride, 1) + count - 1
    levels: list[Step] = []
    stride, count, grain = element_bytes, 1, element_bytes
    for next_stride, next_count in sorted(together.items()):
        if next_count == 1:
            continue
        if next_stride % stride == 0 and stride == grain and next_stride <= stride * count:
            count += next_stride // stride * (next_count - 1)
        elif next_stride < stride * count:
            reach = stride * (count - 1) + next_stride * (next_count - 1)
            grain = math.gcd(grain, next_stride)
            count = min(count * next_count, reach // grain + 1)
            stride = max(1, reach // (count - 1))
        else:
            levels.append((stride, count))
            stride, count, grain = next_stride, next_count, next_stride
    return [*levels, (stride, count)]


def random_draws(draw: Extents, draws: int, whole: Extents) -> Extents:
    """Distinct part of `whole` that independent uniform draws of size `draw` touch: n (1 - (1 - p/n)^draws)."""
    return Extents(
        _distinct(draw.elements, draws, whole.elements),
        _distinct(draw.lines, draws, whole.lines),
    )


def _distinct(part: float, draws: int, whole: float) -> float:
    if draws == 0 or part == 0:
        return 0.0
    if part >= whole:
        return whole
    return -whole * math.expm1(draws * math.log1p(-part / whole))
