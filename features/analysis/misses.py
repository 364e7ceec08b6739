"""Cache misses of a nest in a cache of given size, from the record alone: a level-fit model with soft capacity.

A loop reuses what one of its iterations touched in the next one if the lines of one iteration fit the cache; then it
misses only on distinct lines, else on each iteration's lines anew. The step between both is smooth: real sizes sit
exactly on capacities (a row of 4096 floats and a 16 KiB cache), and a hard rule would turn whole nests over there.
The cache is fully associative and starts cold, so conflicts of power-of-two strides in small caches are not seen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from torch_pim.features.analysis.footprint import buffer_extents
from torch_pim.features.analysis.work import trip
from torch_pim.features.machines import LINE_BYTES
from torch_pim.features.nest import NO_LOOP, Access, LoopNest


@dataclass(frozen=True, slots=True)
class SoftCapacity:
    """Share of reuse that survives in a cache, a logistic function of log(working set / capacity).

    Misses with and without reuse may differ by a factor of thousands, so the two are blended in their logarithms:
    an arithmetic mean would let a leak of one percent outweigh all misses of a nest that fits.
    """

    midpoint: float = 1.0
    """Working set over capacity at which half of the reuse is lost."""
    steepness: float = 6.0
    """Exponent; at infinity the share drops from 1 to 0 at the midpoint."""

    def kept(self, working_set_bytes: float, capacity_bytes: float) -> float:
        """1 / (1 + (working set / (midpoint * capacity)) ** steepness)."""
        if working_set_bytes <= 0:
            return 1.0
        overfill = math.log(working_set_bytes / (self.midpoint * capacity_bytes))
        return 0.5 * (1.0 - math.tanh(0.5 * self.steepness * overfill))

    def blend(self, reused: float, repeated: float, kept: float) -> float:
        """The mean reused ** kept * repeated ** (1 - kept); `reused` is at most `repeated`."""
        reused = min(reused, repeated)
        return repeated * math.pow(reused / repeated, kept) if repeated > 0 else 0.0


DEFAULT_FIT = SoftCapacity()


@dataclass(frozen=True, slots=True)
class Misses:
    """Lines that one execution of the nest fetches into the cache."""

    lines: float
    stored_lines: float
    """Part of `lines` that belongs to stored buffers: they are written back once more."""


def fitted_misses(nest: LoopNest, capacity_bytes: float, fit: SoftCapacity = DEFAULT_FIT) -> Misses:
    """Misses of a concrete nest that runs alone, in order, on a cold cache of `capacity_bytes`.

    With D the lines that one iteration of a loop touches, U those of the whole loop, S the sum of the misses of an
    iteration's parts, and f the share of reuse that survives D: one iteration misses I = blend(D, S, f), and all t
    iterations miss blend(U, t I, f); a single one misses I.
    """
    if capacity_bytes <= 0:
        raise ValueError(f"capacity_bytes is {capacity_bytes}; expected a cache of at least one byte")
    missed: dict[int, dict[int, float]] = {}
    for part in _parts(nest):
        kept = fit.kept(sum(part.iteration.values()) * LINE_BYTES, capacity_bytes)
        total: dict[int, float] = dict(part.direct)
        for child in part.children:
            for buffer, lines in missed[child].items():
                total[buffer] = total.get(buffer, 0.0) + lines
        once = {buffer: fit.blend(part.iteration[buffer], lines, kept) for buffer, lines in total.items()}
        if part.trips != 1:
            once = {buffer: fit.blend(part.whole[buffer], part.trips * lines, kept) for buffer, lines in once.items()}
        missed[part.loop] = once
    by_buffer = missed[NO_LOOP]
    stored = sum(lines for buffer, lines in by_buffer.items() if nest.buffers[buffer].stored)
    return Misses(sum(by_buffer.values()), stored)


@dataclass(frozen=True, slots=True)
class _Part:
    """A loop, or with NO_LOOP the whole nest as a loop of one iteration: the lines that it touches, by buffer."""

    loop: int
    trips: int
    children: tuple[int, ...]
    direct: Mapping[int, float]
    """Touched once by the accesses that stand in the body itself, outside inner loops."""
    iteration: Mapping[int, float]
    whole: Mapping[int, float]


@lru_cache(maxsize=1024)
def _parts(nest: LoopNest) -> tuple[_Part, ...]:
    """The loop tree, children before parents; kept, because every cache of every machine asks for it."""
    children: dict[int, list[int]] = defaultdict(list)
    for index, loop in enumerate(nest.loops):
        children[loop.parent].append(index)
    inside: dict[int, frozenset[int]] = {}
    parts = []
    for index in reversed(range(NO_LOOP, len(nest.loops))):
        below = frozenset().union(*(inside[child] for child in children[index]))
        inside[index] = below | {index}
        accesses = [a for a in nest.accesses if a.loop in inside[index]]
        iteration = _lines(nest, accesses, below)
        parts.append(
            _Part(
                loop=index,
                trips=1 if index == NO_LOOP else trip(nest, index),
                children=tuple(children[index]),
                direct=_lines(nest, [a for a in accesses if a.loop == index], frozenset()),
                iteration=iteration,
                whole=iteration if index == NO_LOOP else _lines(nest, accesses, inside[index]),
            )
        )
    return tuple(parts)


def _lines(nest: LoopNest, accesses: Sequence[Access], loops: frozenset[int]) -> Mapping[int, float]:
    return {buffer: extents.lines for buffer, extents in buffer_extents(nest, accesses, loops).items()}
