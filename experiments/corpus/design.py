"""Which shapes a family is built at: a seeded Latin hypercube in log space (McKay et al., 1979)."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Sequence

Point = tuple[int, ...]


def _stream(name: str) -> random.Random:
    """A random stream of its own per family, so that adding a family changes no other."""
    return random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


def _power_of_two(value: float) -> int:
    return int(2 ** round(math.log2(value)))


def _small_multiple(value: float) -> int:
    """The nearest of 3, 5 and 7 times a power of two."""
    candidates: list[float] = [k * math.exp2(round(math.log2(value / k))) for k in (3, 5, 7)]
    nearest: float = min(candidates, key=lambda candidate: abs(math.log(candidate / value)))
    return max(1, round(nearest))


def _odd(value: float) -> int:
    return round(value) | 1


ROUNDINGS = (_power_of_two, _small_multiple, _odd)
"""Taken in turn: aligned sizes, sizes with short common factors, and sizes that no vector width divides."""


def log_design(
    name: str,
    ranges: Sequence[tuple[int, int]],
    count: int,
    elements: Callable[[Point], float],
    largest: float,
) -> tuple[Point, ...]:
    """`count` points spread evenly in the logarithm of every axis, without repetition.

    A point with more than `largest` elements is shrunk along its longest axis, down to that axis's lower end.
    """
    stream = _stream(name)
    columns = []
    for low, high in ranges:
        strata = sorted(range(count), key=lambda _: stream.random())
        columns.append([low * (high / low) ** ((s + stream.random()) / count) for s in strata])
    points: list[Point] = []
    for number in range(count):
        rounding = ROUNDINGS[number % len(ROUNDINGS)]
        values = [column[number] for column in columns]
        point = tuple(rounding(v) if low < high else low for v, (low, high) in zip(values, ranges, strict=True))
        while elements(point) > largest:
            longest = max(
                (axis for axis, (low, _) in enumerate(ranges) if values[axis] / 2 >= low),
                key=lambda axis: values[axis],
                default=None,
            )
            if longest is None:
                break
            values[longest] /= 2
            point = tuple(rounding(v) if low < high else low for v, (low, high) in zip(values, ranges, strict=True))
        if point not in points:
            points.append(point)
    return tuple(points)
