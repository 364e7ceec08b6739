"""Cache misses of a nest in a cache of given size, from the record alone: a level-fit model with soft capacity.

A loop reuses what one of its iterations touched in the next one if the lines of one iteration fit the cache; then it
misses only on distinct lines, else on each iteration's lines anew. The step between both is smooth: real sizes sit
exactly on capacities (a row of 4096 floats and a 16 KiB cache), and a hard rule would turn whole nests over there.
The cache is fully associative and starts cold, so conflicts of power-of-two strides in small caches are not seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch_pim.features.analysis.loop_lines import LoopLines, loop_lines
from torch_pim.features.machines import LINE_BYTES
from torch_pim.features.nest import NO_LOOP, LoopNest


@dataclass(frozen=True, slots=True)
class SoftCapacity:
    """Share of reuse that survives in a cache, a logistic function of log(working set / capacity).

    Misses with and without reuse may differ by a factor of thousands, so the two are blended in their logarithms:
    an arithmetic mean would let a leak of one percent outweigh all misses of a nest that fits.
    """

    midpoint: float = 1.0
    """Working set over capacity at which half of the reuse is lost."""
    steepness: float = 8.0
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

    With D the lines that one iteration of a loop touches, U those of the whole loop, I the misses of an iteration and
    f the share of reuse that survives D, t iterations miss blend(U, t I, f). Within an iteration, a part of the body
    that comes back to lines of an earlier part finds the share that survives what lies between both. Loaded data
    picks lines at random, whose reuse does not end at a capacity.
    """
    if capacity_bytes <= 0:
        raise ValueError(f"capacity_bytes is {capacity_bytes}; expected a cache of at least one byte")
    missed: dict[int, Mapping[int, float]] = {}
    for part in loop_lines(nest):
        once: dict[int, float] = {}
        for stage in part.stages:
            for buffer, use in stage.uses.items():
                lines = use.lines if stage.loop is None else missed[stage.loop][buffer]
                kept = fit.kept(use.distance * LINE_BYTES, capacity_bytes)
                once[buffer] = once.get(buffer, 0.0) + lines - kept * max(0.0, min(use.lines, lines) - use.fresh)
        missed[part.loop] = once if part.trips == 1 else _repeated(part, once, capacity_bytes, fit)
    by_buffer = missed[NO_LOOP]
    stored = sum(lines for buffer, lines in by_buffer.items() if nest.buffers[buffer].stored)
    return Misses(sum(by_buffer.values()), stored)


def _repeated(
    part: LoopLines, once: Mapping[int, float], capacity_bytes: float, fit: SoftCapacity
) -> Mapping[int, float]:
    """Misses of all iterations of a loop, from those of one."""
    kept = fit.kept(sum(part.iteration.values()) * LINE_BYTES, capacity_bytes)
    total: dict[int, float] = {}
    for buffer, lines in once.items():
        distinct, repeated = part.whole[buffer], part.trips * lines
        total[buffer] = fit.blend(distinct, repeated, kept)
        if buffer in part.drawn:
            passing = sum(lines for other, lines in part.whole.items() if other != buffer)
            drawn = _draw_misses(repeated, distinct, part.drawn[buffer], passing, capacity_bytes / LINE_BYTES)
            total[buffer] = max(total[buffer], drawn)
    return total


def _draw_misses(draws: float, distinct: float, drawable: float, passing: float, capacity: float) -> float:
    """Misses of random draws from n = `drawable` lines while `passing` other lines stream by, in a cache of `capacity`.

    The cache fills within T draws, n (1 - exp(-T / n)) + T * passing / draws = capacity; from then on a line is kept
    for T draws, so that a draw hits with probability 1 - exp(-T / n) (Che, Tung and Wang, 2002).
    """
    if draws <= 0 or capacity >= distinct + passing:
        return distinct
    stream = passing / draws
    low, high = 0.0, draws
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        held = -drawable * math.expm1(-middle / drawable) + stream * middle
        low, high = (middle, high) if held < capacity else (low, middle)
    fresh = -drawable * math.expm1(-low / drawable)
    return min(draws, fresh + (draws - low) * math.exp(-low / drawable))


_BISECTIONS = 40
