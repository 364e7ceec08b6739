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
    """Misses of a concrete nest that runs alone, in order, on a cold cache of `capacity_bytes`."""
    if capacity_bytes <= 0:
        raise ValueError(f"capacity_bytes is {capacity_bytes}; expected a cache of at least one byte")
    by_buffer = _Tree(nest, capacity_bytes, fit).misses(NO_LOOP)
    stored = sum(count for buffer, count in by_buffer.items() if nest.buffers[buffer].stored)
    return Misses(sum(by_buffer.values()), stored)


class _Tree:
    """The loop tree with one cache."""

    def __init__(self, nest: LoopNest, capacity_bytes: float, fit: SoftCapacity) -> None:
        self._nest = nest
        self._capacity = capacity_bytes
        self._fit = fit
        self._children: dict[int, list[int]] = defaultdict(list)
        for index, loop in enumerate(nest.loops):
            self._children[loop.parent].append(index)

    def misses(self, loop: int) -> Mapping[int, float]:
        """Missed lines by buffer, for one execution of a loop (all its iterations) or, for NO_LOOP, of the nest.

        With D the lines of one iteration, U those of the loop, S the sum over the parts of one iteration, and f the
        share of reuse that survives D: one iteration misses I = blend(D, S, f), and all t of them blend(U, t I, f).
        """
        inside, accesses = self._subtree(loop)
        one = self._lines(accesses, inside - {loop})
        kept = self._fit.kept(sum(one.values()) * LINE_BYTES, self._capacity)
        parts: dict[int, float] = defaultdict(float)
        for buffer, lines in self._lines([a for a in accesses if a.loop == loop], frozenset()).items():
            parts[buffer] += lines
        for child in self._children[loop]:
            for buffer, count in self.misses(child).items():
                parts[buffer] += count
        single = {b: self._fit.blend(one[b], count, kept) for b, count in parts.items()}
        if loop == NO_LOOP:
            return single
        trips, distinct = trip(self._nest, loop), self._lines(accesses, inside)
        return {b: self._fit.blend(distinct[b], trips * count, kept) for b, count in single.items()}

    def _subtree(self, loop: int) -> tuple[frozenset[int], Sequence[Access]]:
        inside = {loop}
        for index, other in enumerate(self._nest.loops):
            if other.parent in inside:
                inside.add(index)
        return frozenset(inside), [a for a in self._nest.accesses if a.loop in inside]

    def _lines(self, accesses: Sequence[Access], loops: frozenset[int]) -> Mapping[int, float]:
        return {b: extents.lines for b, extents in buffer_extents(self._nest, accesses, loops).items()}
