"""Equal dynamic sizes become one value: loops over them can only fuse when that is known."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import functions, run_passes, walk
from torch_pim.compiler_hook.lowering.views import constant_index, defining_op

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_SIZES = {"memref.expand_shape": "static_output_shape", "memref.subview": "static_sizes"}


def resolve_dimensions(module: ir.Module) -> None:
    """Replaces `memref.dim` of allocations and views by the value that the size was made from, in place."""
    changed = False
    for function in functions(module):
        for op in walk(function.operation, "memref.dim"):
            dimension = constant_index(op.operands[1])
            size = None if dimension is None else _size(op.operands[0], dimension, op)
            if size is not None:
                op.result.replace_all_uses_with(size)
                op.erase()
                changed = True
    if changed:
        run_passes(module, "canonicalize,cse", "clean-up of dimensions")


def _size(buffer: ir.Value, dimension: int, user: ir.Operation) -> ir.Value | None:
    """The value of a dynamic dimension in terms of something earlier; None when `memref.dim` is all there is."""
    op = defining_op(buffer)
    if op is None:
        return None
    if op.name == "memref.alloc":
        shape = ir.MemRefType(buffer.type).shape
        return op.operands[sum(size == _DYNAMIC for size in shape[:dimension])]
    if op.name in _SIZES:
        return _listed_size(op, dimension)
    if op.name == "memref.cast":
        return _size(op.operands[0], dimension, user)
    if op.name == "memref.collapse_shape":
        group = [ir.IntegerAttr(i).value for i in ir.ArrayAttr(op.attributes["reassociation"][dimension])]
        shape = ir.MemRefType(op.operands[0].type).shape
        wide = [i for i in group if shape[i] != 1]
        return _dimension(op.operands[0], wide[0], user) if len(wide) == 1 else None
    return None


def _listed_size(op: ir.Operation, dimension: int) -> ir.Value | None:
    """Size that an operation lists for its result; None for a subview that drops dimensions."""
    sizes = list(ir.DenseI64ArrayAttr(op.attributes[_SIZES[op.name]]))
    if len(sizes) != ir.MemRefType(op.result.type).rank:
        return None
    dynamic = sum(size == _DYNAMIC for size in sizes)
    strides = 0
    if op.name == "memref.subview":
        strides = sum(size == _DYNAMIC for size in ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    first = len(op.operands) - dynamic - strides
    return op.operands[first + sum(size == _DYNAMIC for size in sizes[:dimension])]


def _dimension(buffer: ir.Value, dimension: int, user: ir.Operation) -> ir.Value:
    found = _size(buffer, dimension, user)
    if found is not None:
        return found
    with ir.InsertionPoint(user), user.location:
        index = ir.IndexType.get()
        number = ir.Operation.create(
            "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, dimension)}
        )
        return ir.Operation.create("memref.dim", results=[index], operands=[buffer, number.result]).result
