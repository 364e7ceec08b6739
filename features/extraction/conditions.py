"""How often a branch condition holds, where loop counters alone decide it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from torch_mlir import ir

from torch_pim.features.extent import Extent, concrete, symbols_of
from torch_pim.features.extraction.index_form import IndexForm, subtract

MOST_POINTS = 1 << 20
"""Conditions over more combinations of loop counters than this are not counted out."""

_Truth = npt.NDArray[np.bool_]
_Difference = npt.NDArray[np.int64]

_COMPARISONS: tuple[Callable[[_Difference], _Truth], ...] = (
    lambda d: d == 0,
    lambda d: d != 0,
    *(lambda d: d < 0, lambda d: d <= 0, lambda d: d > 0, lambda d: d >= 0) * 2,
)
"""By the predicate number of `arith.cmpi`; unsigned ones equal signed ones, since indices are not negative."""

_JUNCTIONS: Mapping[str, Callable[[_Truth, _Truth], _Truth]] = {
    "arith.andi": np.logical_and,
    "arith.ori": np.logical_or,
    "arith.xori": np.logical_xor,
}


class _Undecided(Exception):
    """The condition depends on more than loop counters."""


def true_share(condition: ir.Value, form_of: Callable[[ir.Value], IndexForm], trips: Sequence[Extent]) -> float | None:
    """Share of iterations in which the condition holds: counted out over the loops that it depends on.

    None for conditions on data, for symbolic loops, and for more than MOST_POINTS combinations.
    """
    try:
        loops = _loops(condition, form_of)
        sizes = [trips[loop] for loop in loops]
        known = [size for size in sizes if isinstance(size, int)]
        if len(known) != len(sizes) or not 0 < math.prod(known) <= MOST_POINTS:
            return None
        grids = np.meshgrid(*(np.arange(size) for size in known), indexing="ij", sparse=True)
        truth = _truth(condition, form_of, dict(zip(loops, grids, strict=True)))
    except _Undecided:
        return None
    return float(np.broadcast_to(truth, known).mean())


def _difference(op: ir.Operation, form_of: Callable[[ir.Value], IndexForm]) -> IndexForm:
    """Left minus right of a comparison of linear values."""
    form = subtract(form_of(op.operands[0]), form_of(op.operands[1]))
    numbers = [form.constant, *(c for _, c in form.coefficients)]
    if form.indirect or not form.exact or not form.affine or any(symbols_of(number) for number in numbers):
        raise _Undecided
    return form


def _loops(condition: ir.Value, form_of: Callable[[ir.Value], IndexForm]) -> list[int]:
    op = _operation(condition)
    if op.name == "arith.cmpi":
        return sorted(_difference(op, form_of).loops)
    if op.name in _JUNCTIONS:
        return sorted({loop for operand in op.operands for loop in _loops(operand, form_of)})
    raise _Undecided


def _truth(
    condition: ir.Value, form_of: Callable[[ir.Value], IndexForm], counters: Mapping[int, npt.NDArray[np.int64]]
) -> _Truth:
    op = _operation(condition)
    if op.name in _JUNCTIONS:
        left, right = (_truth(operand, form_of, counters) for operand in op.operands)
        return _JUNCTIONS[op.name](left, right)
    form = _difference(op, form_of)
    value = np.asarray(concrete(form.constant), dtype=np.int64)
    for loop, coefficient in form.coefficients:
        value = value + concrete(coefficient) * counters[loop]
    return _COMPARISONS[int(op.attributes["predicate"].value)](value)


def _operation(value: ir.Value) -> ir.Operation:
    if isinstance(value.owner, ir.Block):
        raise _Undecided
    return value.owner.operation
