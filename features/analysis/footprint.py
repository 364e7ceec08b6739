"""How many bytes and lines of each buffer a nest touches while some of its loops run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch_pim.features.analysis.windows import NOTHING, Extents, random_draws, touched
from torch_pim.features.analysis.work import trip
from torch_pim.features.extent import concrete
from torch_pim.features.machines import LINE_BYTES
from torch_pim.features.nest import ELEMENT_BYTES, Access, LoopNest


@dataclass(frozen=True, slots=True)
class Footprint:
    """Distinct memory that the whole nest touches, each buffer counted once."""

    touched_bytes: float
    stored_bytes: float
    lines: float
    stored_lines: float
    largest_buffer_bytes: float
    """Touched bytes of the buffer of which most is touched."""

    @property
    def line_utilisation(self) -> float:
        """Touched bytes over the bytes of the touched lines; 1 for a nest that touches nothing."""
        return min(1.0, self.touched_bytes / (self.lines * LINE_BYTES)) if self.lines else 1.0


def nest_footprint(nest: LoopNest) -> Footprint:
    """Footprint of one execution of a concrete nest."""
    every = frozenset(range(len(nest.loops)))
    everything = buffer_extents(nest, nest.accesses, every)
    stored = buffer_extents(nest, [a for a in nest.accesses if a.kind == "store"], every)
    size = {index: ELEMENT_BYTES[buffer.element_type] for index, buffer in enumerate(nest.buffers)}
    touched_bytes = [e.elements * size[b] for b, e in everything.items()]
    return Footprint(
        touched_bytes=sum(touched_bytes),
        stored_bytes=sum(e.elements * size[b] for b, e in stored.items()),
        lines=sum(e.lines for e in everything.values()),
        stored_lines=sum(e.lines for e in stored.values()),
        largest_buffer_bytes=max(touched_bytes, default=0.0),
    )


def buffer_extents(nest: LoopNest, accesses: Iterable[Access], loops: frozenset[int]) -> Mapping[int, Extents]:
    """Elements and lines of each buffer that the accesses touch while `loops` run and all other counters stand still.

    Accesses with the same progressions are one pattern, shifted: they touch common memory as far as their offsets
    let them. Different patterns on one buffer add up, to the whole buffer at most.
    """
    patterns: dict[int, dict[_Pattern, list[Access]]] = defaultdict(lambda: defaultdict(list))
    for access in accesses:
        patterns[access.buffer][_pattern(nest, access, loops)].append(access)
    return {
        buffer: _united(
            [_pattern_extents(nest, buffer, pattern, members) for pattern, members in found.items()],
            whole_buffer(nest, buffer),
        )
        for buffer, found in patterns.items()
    }


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What accesses must have in common to walk the same way."""

    steps: tuple[tuple[int, int], ...]
    draws: int
    """How many different loaded positions start the walk; 1 for an address that no data moves."""
    bounded: bool
    """False where the walk is only estimated, so that the buffer's size has to bound it."""
    alignment: int
    """Bytes that the walk's start is a multiple of, whatever the standing loops and the loaded data are."""


def _pattern(nest: LoopNest, access: Access, loops: frozenset[int]) -> _Pattern:
    running = [loop for loop in nest.enclosing(access.loop) if loop in loops]
    strides = dict(access.byte_strides)
    drawing = [loop for loop in running if loop in access.indirect_loops]
    draws = 1
    for loop in drawing:
        draws *= trip(nest, loop)
    if any(trip(nest, loop) == 0 for loop in running):
        draws = 0
    steps = sorted(
        (abs(concrete(strides[loop])), trip(nest, loop)) for loop in running if loop in strides and loop not in drawing
    )
    bounded = access.affine or not access.byte_strides
    return _Pattern(tuple(steps), draws, bounded, _alignment(nest, access, loops))


def _alignment(nest: LoopNest, access: Access, running: frozenset[int]) -> int:
    """Common divisor of the steps of the standing loops; loaded data is taken to choose whole rows of the buffer."""
    grain = LINE_BYTES
    for loop, stride in access.byte_strides:
        if loop not in running and trip(nest, loop) > 1:
            grain = math.gcd(grain, concrete(stride))
    if access.indirect:
        buffer = nest.buffers[access.buffer]
        row = concrete(buffer.shape[-1]) if len(buffer.shape) > 1 else 1
        grain = math.gcd(grain, ELEMENT_BYTES[buffer.element_type] * row)
    return grain


def _pattern_extents(nest: LoopNest, buffer: int, pattern: _Pattern, members: list[Access]) -> Extents:
    element_bytes = ELEMENT_BYTES[nest.buffers[buffer].element_type]
    steps = list(pattern.steps)
    if pattern.draws == 0:
        return NOTHING
    offsets = sorted({concrete(a.byte_offset) for a in members})
    if len(offsets) > 1:
        steps.append(((offsets[-1] - offsets[0]) // (len(offsets) - 1), len(offsets)))
    extents = touched(steps, element_bytes, pattern.alignment)
    whole = whole_buffer(nest, buffer)
    if any(a.indirect for a in members):
        extents = random_draws(extents, pattern.draws, whole)
    lines = extents.lines if pattern.bounded else min(extents.lines, whole.lines)
    share = _touching_share(members)
    return Extents(min(extents.elements, whole.elements) * share, lines * share)


def _touching_share(members: list[Access]) -> float:
    """Share of iterations that touch a pattern: both sides of a branch add up, a load beside its store does not."""
    shares: dict[tuple[str, int], float] = defaultdict(float)
    for access in members:
        shares[access.kind, concrete(access.byte_offset)] += access.probability
    return min(1.0, max(shares.values()))


def whole_buffer(nest: LoopNest, buffer: int) -> Extents:
    """Elements and lines of a whole buffer, packed."""
    nbytes = concrete(nest.buffers[buffer].nbytes)
    return Extents(nbytes // ELEMENT_BYTES[nest.buffers[buffer].element_type], -(-nbytes // LINE_BYTES))


def _united(parts: list[Extents], whole: Extents) -> Extents:
    elements = min(sum(p.elements for p in parts), whole.elements)
    bound = max(whole.lines, *(p.lines for p in parts))
    return Extents(elements, min(sum(p.lines for p in parts), bound))
