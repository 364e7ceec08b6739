"""Cache lines that each loop of a nest touches, part by part: what the miss model needs to know of a nest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from torch_pim.features.analysis.footprint import buffer_extents, whole_buffer
from torch_pim.features.analysis.work import trip
from torch_pim.features.nest import NO_LOOP, Access, LoopNest


@dataclass(frozen=True, slots=True)
class Use:
    """How one part of a loop body uses one buffer, in one iteration."""

    lines: float
    """Lines that the part touches."""
    fresh: float
    """Those among them that no earlier part of the body has touched."""
    distance: float
    """Lines of all buffers touched since an earlier part used the same one: half of both parts, and what lies between.
    Zero for a first use."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a loop body: an inner loop, or the accesses outside inner loops, which count as the first part."""

    loop: int | None
    uses: Mapping[int, Use]
    """By buffer."""


@dataclass(frozen=True, slots=True)
class LoopLines:
    """A loop, or with NO_LOOP the whole nest as a loop of one iteration. Lines are by buffer."""

    loop: int
    trips: int
    stages: tuple[Stage, ...]
    iteration: Mapping[int, float]
    """Lines of one iteration."""
    whole: Mapping[int, float]
    """Lines of all iterations."""
    drawn: Mapping[int, float]
    """For buffers in which loaded data that this loop moves picks the place: lines that may be picked."""


@lru_cache(maxsize=1024)
def loop_lines(nest: LoopNest) -> tuple[LoopLines, ...]:
    """Every loop of a concrete nest, inner ones before outer ones, the whole nest last.

    The result is kept, because every cache of every machine asks for it.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for index, loop in enumerate(nest.loops):
        children[loop.parent].append(index)
    inside: dict[int, frozenset[int]] = {}
    found = []
    for index in reversed(range(NO_LOOP, len(nest.loops))):
        below = frozenset().union(*(inside[child] for child in children[index]))
        inside[index] = below | {index}
        accesses = [a for a in nest.accesses if a.loop in inside[index]]
        iteration = _lines(nest, accesses, below)
        parts = [(child, inside[child]) for child in children[index]]
        found.append(
            LoopLines(
                loop=index,
                trips=1 if index == NO_LOOP else trip(nest, index),
                stages=_stages(nest, index, parts),
                iteration=iteration,
                whole=iteration if index == NO_LOOP else _lines(nest, accesses, inside[index]),
                drawn={a.buffer: whole_buffer(nest, a.buffer).lines for a in accesses if index in a.indirect_loops},
            )
        )
    return tuple(found)


def _stages(nest: LoopNest, loop: int, inner: list[tuple[int, frozenset[int]]]) -> tuple[Stage, ...]:
    """Parts of a loop body in order, with the reuse between them."""
    own = [a for a in nest.accesses if a.loop == loop]
    parts: list[tuple[int | None, frozenset[int], list[Access]]] = [(None, frozenset(), own)] if own else []
    parts += [(child, loops, [a for a in nest.accesses if a.loop in loops]) for child, loops in inner]
    stages: list[Stage] = []
    sizes: list[float] = []
    last: dict[int, int] = {}
    seen: list[Access] = []
    running: frozenset[int] = frozenset()
    before: Mapping[int, float] = {}
    for place, (child, loops, accesses) in enumerate(parts):
        lines = _lines(nest, accesses, loops)
        sizes.append(sum(lines.values()))
        seen, running = [*seen, *accesses], running | loops
        united = _lines(nest, seen, running) if stages else lines
        uses = {}
        for buffer, count in lines.items():
            distance = 0.0
            if buffer in last:
                distance = (sizes[last[buffer]] + sizes[place]) / 2 + sum(sizes[last[buffer] + 1 : place])
            uses[buffer] = Use(count, min(count, max(0.0, united[buffer] - before.get(buffer, 0.0))), distance)
            last[buffer] = place
        before = united
        stages.append(Stage(child, uses))
    return tuple(stages)


def _lines(nest: LoopNest, accesses: Iterable[Access], loops: frozenset[int]) -> Mapping[int, float]:
    return {buffer: extents.lines for buffer, extents in buffer_extents(nest, accesses, loops).items()}
