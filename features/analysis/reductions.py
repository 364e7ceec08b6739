"""Accumulators: places that a loop loads, changes and stores again in each iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch_pim.features.analysis.work import access_count, trip
from torch_pim.features.nest import Access, LoopNest


@dataclass(frozen=True, slots=True)
class Reduction:
    """One accumulator of a sequential loop."""

    store: Access
    length: int
    """How many values are combined into one result: the trips of the sequential loops that do not move it."""
    executions: float
    """Accumulating stores in all."""


def reductions(nest: LoopNest) -> tuple[Reduction, ...]:
    """Accumulators in program order: a store in a sequential loop that does not move it, beside a load of the place."""
    found = []
    for store in nest.accesses:
        if store.kind == "store" and is_accumulator(nest, store):
            moved = {loop for loop, _ in store.byte_strides}
            still = [
                loop
                for loop in nest.enclosing(store.loop)
                if loop not in moved and nest.loops[loop].kind == "sequential"
            ]
            length = math.prod(trip(nest, loop) for loop in still)
            found.append(Reduction(store, length, access_count(nest, store)))
    return tuple(found)


def is_accumulator(nest: LoopNest, access: Access) -> bool:
    """True for a load or store of a place that its own, sequential loop both loads and stores and does not move."""
    if access.loop < 0 or nest.loops[access.loop].kind != "sequential":
        return False
    if access.indirect or access.loop in dict(access.byte_strides):
        return False
    return any(
        other.kind != access.kind
        and (other.buffer, other.loop, other.byte_strides, other.byte_offset)
        == (access.buffer, access.loop, access.byte_strides, access.byte_offset)
        for other in nest.accesses
    )
