"""Contractions (matrix products, convolutions): multiply-adds over two operands that reuse each other."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.features.analysis.footprint import buffer_extents
from torch_pim.features.analysis.reductions import Reduction, reductions
from torch_pim.features.analysis.work import trip
from torch_pim.features.nest import Access, LoopNest


@dataclass(frozen=True, slots=True)
class Contraction:
    """result[b, m, n] += left[b, m, k] * right[b, n, k], each letter the product of the loops that move those operands.

    A sliding window (convolution) moves the left operand with both m and k. `m` and `n` are the reuses of `right` and
    `left`; a matrix-vector product has one of them 1.
    """

    left: Access
    right: Access
    result: Access
    batch: int
    m: int
    n: int
    k: int
    macs: float
    """Multiply-adds in all."""

    @property
    def is_vector(self) -> bool:
        """True where one operand is used only once (gemv): no blocking can save its traffic."""
        return min(self.m, self.n) == 1


def contractions(nest: LoopNest) -> tuple[Contraction, ...]:
    """One for each innermost loop that accumulates, multiplies and adds, and there loads two operands that it moves
    and that other loops move differently, so that one of them is used again; in program order.
    """
    found = []
    for reduction in reductions(nest):
        loop = reduction.store.loop
        kinds = {o.kind for o in nest.operations if o.loop == loop}
        if nest.is_innermost(loop) and {"multiply", "add"} <= kinds:
            contraction = _contraction(nest, reduction)
            if contraction is not None:
                found.append(contraction)
    return tuple(found)


def _contraction(nest: LoopNest, reduction: Reduction) -> Contraction | None:
    result = reduction.store
    loads = _operands(nest, result)
    pair = next(((loads[0], other) for other in loads[1:] if moved_by(nest, other) != moved_by(nest, loads[0])), None)
    if pair is None:
        return None
    left, right = pair
    sizes = {"batch": 1, "m": 1, "n": 1, "k": 1}
    for loop in nest.enclosing(result.loop):
        role = _role(*(loop in moved_by(nest, access) for access in (left, right, result)))
        sizes[role] *= trip(nest, loop)
    if sizes["m"] == sizes["n"] == 1:
        return None
    return Contraction(left, right, result, **sizes, macs=reduction.executions)


def _operands(nest: LoopNest, result: Access) -> list[Access]:
    """Loads beside the result that the reduction loop moves, those that touch the most elements first."""
    path = frozenset(nest.enclosing(result.loop))
    loads = [
        a
        for a in nest.accesses
        if a.kind == "load" and a.loop == result.loop and a.buffer != result.buffer and a.loop in moved_by(nest, a)
    ]
    return sorted(loads, key=lambda a: -buffer_extents(nest, [a], path)[a.buffer].elements)


def moved_by(nest: LoopNest, access: Access) -> frozenset[int]:
    """Loops with more than one iteration that move an access."""
    loops = {loop for loop, _ in access.byte_strides} | set(access.indirect_loops)
    return frozenset(loop for loop in loops if trip(nest, loop) > 1)


def _role(left: bool, right: bool, result: bool) -> str:
    """Part that a loop plays, from which of the three accesses it moves."""
    if not result:
        return "k"
    if left == right:
        return "batch"
    return "m" if left else "n"
