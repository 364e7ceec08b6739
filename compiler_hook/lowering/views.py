"""Which buffer a memref value is a view of, and what an index into the view means in the buffer."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

VIEWS = (
    "memref.subview",
    "memref.expand_shape",
    "memref.collapse_shape",
    "memref.cast",
    "memref.reinterpret_cast",
    "memref.reshape",
    "memref.memory_space_cast",
)


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that defines the value; None for block arguments."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def root_buffer(value: ir.Value) -> ir.Value:
    """The allocation, global or argument behind a chain of views."""
    op = defining_op(value)
    while op is not None and op.name in VIEWS:
        value = op.operands[0]
        op = defining_op(value)
    return value


def constant_index(value: ir.Value) -> int | None:
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def indices_in_root(memref: ir.Value, indices: Sequence[ir.Value | None]) -> list[ir.Value | None] | None:
    """Index values in the root buffer's dimensions, None per dimension where a constant or unknown one stands.

    Follows views that add or drop unit dimensions only. Returns None for any other view: then nothing is known.
    """
    current: list[ir.Value | None] = list(indices)
    op = defining_op(memref)
    while op is not None and op.name in VIEWS:
        source = ir.MemRefType(op.operands[0].type)
        result = ir.MemRefType(op.results[0].type)
        if op.name == "memref.cast":
            pass
        elif op.name in ("memref.expand_shape", "memref.collapse_shape"):
            kept = _without_units(result, current)
            sizes = [size for size in source.shape if size != 1]
            if len(kept) != len(sizes) or [size for size in result.shape if size != 1] != sizes:
                return None
            remaining = iter(kept)
            current = [None if size == 1 else next(remaining) for size in source.shape]
        else:
            return None
        memref = op.operands[0]
        op = defining_op(memref)
    return current


def _without_units(memref: ir.MemRefType, indices: Sequence[ir.Value | None]) -> list[ir.Value | None]:
    return [index for size, index in zip(memref.shape, indices, strict=True) if size != 1]
