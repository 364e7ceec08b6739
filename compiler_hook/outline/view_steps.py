"""Memref view operations to View steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.outline.memref_types import parameter_of
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter
from torch_pim.compiler_hook.outline.program import Operand, Slot, View

_DYNAMIC = -(2**63)


def view_step(op: ir.Operation, operand: Callable[[ir.Value], Operand], result: Callable[[], Slot]) -> View:
    """The step of one view operation; LoweringError for a kind that is not known."""
    source = operand(op.operands[0])
    layout = parameter_of(op.results[0].type)
    if not isinstance(source, Slot) or not isinstance(layout, MemRefParameter):
        raise LoweringError(f"{op.name}: source is not a buffer")
    kind = op.name.removeprefix("memref.")
    if kind in ("subview", "reinterpret_cast"):
        dynamic = iter([operand(v) for v in list(op.operands)[1:]])
        offsets = _mixed(op, "static_offsets", dynamic)
        sizes = _mixed(op, "static_sizes", dynamic)
        strides = _mixed(op, "static_strides", dynamic)
        dropped = _dropped(op, layout) if kind == "subview" else ()
        return View(kind, result(), source, layout, offsets, sizes, strides, dropped=dropped)
    if kind in ("expand_shape", "collapse_shape"):
        groups = tuple(
            tuple(ir.IntegerAttr(i).value for i in ir.ArrayAttr(group)) for group in op.attributes["reassociation"]
        )
        sizes = ()
        if kind == "expand_shape":
            sizes = _mixed(op, "static_output_shape", iter([operand(v) for v in list(op.operands)[1:]]))
        return View(kind, result(), source, layout, sizes=sizes, groups=groups)
    if kind == "cast":
        return View(kind, result(), source, layout)
    if kind == "reshape":
        shape = operand(op.operands[1])
        assert isinstance(shape, Slot)
        return View(kind, result(), source, layout, shape=shape)
    raise LoweringError(f"view {op.name} is not supported")


def _mixed(op: ir.Operation, attribute: str, dynamic: Iterator[Operand]) -> tuple[Operand, ...]:
    """Static values with the dynamic operands filled in."""
    values = list(ir.DenseI64ArrayAttr(op.attributes[attribute]))
    return tuple(next(dynamic) if value == _DYNAMIC else value for value in values)


def _dropped(op: ir.Operation, layout: MemRefParameter) -> tuple[int, ...]:
    """Unit dimensions that a rank-reducing subview drops: those whose absence leaves the result's sizes and strides."""
    source = parameter_of(op.operands[0].type)
    assert isinstance(source, MemRefParameter)
    sizes = [_known(size) for size in ir.DenseI64ArrayAttr(op.attributes["static_sizes"])]
    steps = [_known(step) for step in ir.DenseI64ArrayAttr(op.attributes["static_strides"])]
    strides = [None if a is None or b is None else a * b for a, b in zip(source.strides, steps, strict=True)]
    units = [dimension for dimension, size in enumerate(sizes) if size == 1]
    for dropped in itertools.combinations(units, len(sizes) - len(layout.shape)):
        kept = [dimension for dimension in range(len(sizes)) if dimension not in dropped]
        same_sizes = all(sizes[d] == size for d, size in zip(kept, layout.shape, strict=True))
        if same_sizes and all(_agree(strides[d], s) for d, s in zip(kept, layout.strides, strict=True)):
            return dropped
    raise LoweringError(f"{op.name}: no dimensions of {op.operands[0].type} can be dropped to get {op.results[0].type}")


def _known(value: int) -> int | None:
    return None if value == _DYNAMIC else value


def _agree(left: int | None, right: int | None) -> bool:
    return left is None or right is None or left == right
