"""Lines that a nest fetches into caches of given size, blocked where it is a contraction, on one or many cores."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from torch_pim.features.analysis.contractions import Contraction, contractions, moved_by
from torch_pim.features.analysis.footprint import buffer_extents, nest_footprint
from torch_pim.features.analysis.misses import fitted_misses
from torch_pim.features.analysis.work import access_count, trip
from torch_pim.features.machines import LINE_BYTES
from torch_pim.features.nest import ELEMENT_BYTES, LoopNest


@dataclass(frozen=True, slots=True)
class Traffic:
    """Lines over all caches of one level."""

    fetched: float
    written_back: float

    @property
    def nbytes(self) -> float:
        return (self.fetched + self.written_back) * LINE_BYTES


@functools.lru_cache(maxsize=1 << 16)
def traffic(nest: LoopNest, capacity_bytes: int, caches: int) -> Traffic:
    """Traffic into `caches` private caches of `capacity_bytes` each (1 for a shared one), all cold.

    The level-fit misses of the loops as written; not more than ideal blocking needs if the nest is a contraction; not
    less than each cache's own copy of what several cores read; not more than there are accesses.
    """
    footprint = nest_footprint(nest)
    if footprint.lines <= 0:
        return Traffic(0.0, 0.0)
    fitted = fitted_misses(nest, capacity_bytes)
    fetched = max(fitted.lines, footprint.lines)
    found = contractions(nest)
    if found:
        blocked = sum(blocked_lines(contraction, capacity_bytes) for contraction in found)
        fetched = min(fetched, max(footprint.lines, blocked))
    copies = sum(max(0.0, copies - 1.0) * lines for copies, lines in _copies(nest, caches))
    fetched = footprint.lines + max(fetched - footprint.lines, copies)
    fetched = min(fetched, max(footprint.lines, sum(access_count(nest, a) for a in nest.accesses)))
    stored_share = fitted.stored_lines / fitted.lines if fitted.lines else 0.0
    written = max(footprint.stored_lines, min(fetched * stored_share, fitted.stored_lines))
    return Traffic(fetched, written)


def blocked_lines(contraction: Contraction, capacity_bytes: float) -> float:
    """Lines of both operands with square tiles of which three fit the cache (Hong and Kung, 1981).

    An operand that n other results need is fetched n / tile times instead of n times.
    """
    lines = 0.0
    for access, reuse in ((contraction.left, contraction.n), (contraction.right, contraction.m)):
        size = ELEMENT_BYTES[access.element_type]
        tile = math.sqrt(capacity_bytes / (3.0 * size))
        lines += contraction.macs * size / max(1.0, min(reuse, tile)) / LINE_BYTES
    return lines


def _copies(nest: LoopNest, caches: int) -> list[tuple[float, float]]:
    """(caches that need a buffer's lines, its lines) for each buffer, the parallel range split from the outside."""
    ways: dict[int, float] = {}
    left = float(caches)
    for loop in range(nest.parallel_rank):
        ways[loop] = max(1.0, min(left, trip(nest, loop)))
        left /= ways[loop]
    used = math.prod(ways.values())
    copies: list[tuple[float, float]] = []
    every = frozenset(range(len(nest.loops)))
    for buffer, extents in buffer_extents(nest, nest.accesses, every).items():
        moving = {loop for a in nest.accesses if a.buffer == buffer for loop in moved_by(nest, a)}
        parts = math.prod(count for loop, count in ways.items() if loop in moving)
        copies.append((used / parts, extents.lines))
    return copies
