"""A family: one function at the points of its design, in one or more element types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch_pim.experiments.corpus.design import Point, log_design
from torch_pim.experiments.corpus.entry import ArgumentSpec, CorpusEntry

LARGEST_BYTES = 192 * 2**20
"""Arguments of one entry stay below this: several times the last-level caches of the host presets."""


@dataclass(frozen=True, slots=True)
class Family:
    """`arguments` maps a point to the f32 argument specifications; `half_every` adds f16 and bf16 variants."""

    name: str
    group: str
    function: Callable[..., Any]
    arguments: Callable[[Point], tuple[ArgumentSpec, ...]]
    ranges: tuple[tuple[int, int], ...]
    count: int = 12
    half_every: int = 0
    """Every n-th point also comes in f16, and the one after it in bf16; 0 for none."""
    largest_bytes: int = LARGEST_BYTES

    def points(self) -> tuple[Point, ...]:
        def elements(point: Point) -> float:
            return float(sum(argument.nbytes for argument in self.arguments(point)))

        return log_design(self.name, self.ranges, self.count, elements, self.largest_bytes)

    def entries(self) -> Iterator[CorpusEntry]:
        """One entry per point, and its half-precision variants."""
        for number, point in enumerate(self.points()):
            yield self._entry(point, "f32")
            if self.half_every and number % self.half_every == 0:
                yield self._entry(point, "f16")
            if self.half_every and number % self.half_every == 1:
                yield self._entry(point, "bf16")

    def _entry(self, point: Point, dtype: str) -> CorpusEntry:
        arguments = tuple(
            replace(argument, dtype=dtype) if argument.dtype == "f32" else argument
            for argument in self.arguments(point)
        )
        name = f"{self.name}/{'x'.join(map(str, point))}/{dtype}"
        return CorpusEntry(name, self.name, self.group, self.function, arguments)


def shaped(*shapes: Callable[[Point], Sequence[int]]) -> Callable[[Point], tuple[ArgumentSpec, ...]]:
    """Arguments of normally distributed f32 values whose shapes are functions of the point."""
    return lambda point: tuple(ArgumentSpec(tuple(shape(point))) for shape in shapes)


def positive(*shapes: Callable[[Point], Sequence[int]]) -> Callable[[Point], tuple[ArgumentSpec, ...]]:
    """As `shaped`, with values in [0.5, 1.5)."""
    return lambda point: tuple(ArgumentSpec(tuple(shape(point)), values="positive") for shape in shapes)


def same(point: Point) -> Point:
    """The point itself as a shape."""
    return point
