"""Which share of a nest could run on SIMD lanes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from torch_pim.features.analysis.strides import stride_class
from torch_pim.features.analysis.work import access_count
from torch_pim.features.nest import NO_LOOP, Access, LoopNest


@dataclass(frozen=True, slots=True)
class Vectorisation:
    """Shares of all executed accesses, between 0 and 1."""

    as_emitted: float
    """In loop bodies that the loop around them can vectorise."""
    interchanged: float
    """In loop bodies that some enclosing loop can vectorise, if it is moved inwards."""


def vectorisation(nest: LoopNest) -> Vectorisation:
    """A loop can vectorise a body if each access in it is unit or invariant along the loop and none is guarded.

    Reductions count as vectorisable: host and device code may both reorder sums.
    """
    bodies: dict[int, list[Access]] = defaultdict(list)
    for access in nest.accesses:
        bodies[access.loop].append(access)
    total = emitted = interchanged = 0.0
    for loop, accesses in bodies.items():
        weight = sum(access_count(nest, a) for a in accesses)
        total += weight
        if loop == NO_LOOP:
            continue
        if vectorises(accesses, loop):
            emitted += weight
        if any(vectorises(accesses, outer) for outer in nest.enclosing(loop)):
            interchanged += weight
    return Vectorisation(emitted / total, interchanged / total) if total else Vectorisation(0.0, 0.0)


def vectorises(accesses: list[Access], loop: int) -> bool:
    """Whether all accesses of one body can run on SIMD lanes along the loop."""
    return all(a.probability == 1.0 and stride_class(a, loop) in ("unit", "invariant") for a in accesses)
