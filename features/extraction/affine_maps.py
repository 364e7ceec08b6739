"""Affine maps of `affine.apply`, `affine.min` and `affine.max` on index forms."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from torch_pim.features.extent import Extent
from torch_pim.features.extraction import index_form
from torch_pim.features.extraction.index_form import IndexForm


def apply_map(affine_map: ir.AffineMap, operands: Sequence[IndexForm], trips: Sequence[Extent]) -> list[IndexForm]:
    """One form per result of the map; operands are its dimensions, then its symbols."""
    dimensions = operands[: affine_map.n_dims]
    symbols = operands[affine_map.n_dims :]
    return [_value(expression, dimensions, symbols, trips) for expression in affine_map.results]


def operation_count(affine_map: ir.AffineMap) -> int:
    """How many additions, multiplications and divisions the results of the map take."""
    return sum(_operations(expression) for expression in affine_map.results)


def _value(
    expression: ir.AffineExpr, dimensions: Sequence[IndexForm], symbols: Sequence[IndexForm], trips: Sequence[Extent]
) -> IndexForm:
    if isinstance(expression, ir.AffineConstantExpr):
        return IndexForm(int(expression.value))
    if isinstance(expression, ir.AffineDimExpr):
        return dimensions[int(expression.position)]
    if isinstance(expression, ir.AffineSymbolExpr):
        return symbols[int(expression.position)]
    left = _value(expression.lhs, dimensions, symbols, trips)
    right = _value(expression.rhs, dimensions, symbols, trips)
    if isinstance(expression, ir.AffineAddExpr):
        return index_form.add(left, right)
    if isinstance(expression, ir.AffineMulExpr):
        return index_form.multiply(left, right)
    if isinstance(expression, ir.AffineModExpr):
        return index_form.remainder(left, right, trips)
    if isinstance(expression, ir.AffineCeilDivExpr):
        return index_form.ceil_divide(left, right, trips)
    return index_form.floor_divide(left, right, trips)


def _operations(expression: ir.AffineExpr) -> int:
    if isinstance(expression, ir.AffineConstantExpr | ir.AffineDimExpr | ir.AffineSymbolExpr):
        return 0
    return 1 + _operations(expression.lhs) + _operations(expression.rhs)
