"""Constant tensors of a module."""

from __future__ import annotations

import numpy as np
from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.outline.program import GlobalTensor, Slot

_STORAGE = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
    "i8": np.int8, "i1": np.bool_,
}  # fmt: skip


def global_tensor(op: ir.Operation, result: Slot) -> GlobalTensor:
    """The data behind a memref.get_global; LoweringError if it is not there or its type is not known."""
    name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
    memref = ir.MemRefType(op.results[0].type)
    element_type = str(memref.element_type)
    shape = tuple(int(size) for size in memref.shape)
    for candidate in _module_block(op).operations:
        operation = candidate.operation
        if operation.name == "memref.global" and ir.StringAttr(operation.attributes["sym_name"]).value == name:
            return GlobalTensor(
                result, element_type, shape, _bytes(operation.attributes["initial_value"], element_type, shape)
            )
    raise LoweringError(f"constant tensor @{name} has no data")


def _module_block(op: ir.Operation) -> ir.Block:
    current = op
    while current.name != "builtin.module":
        current = current.parent.operation
    return current.regions[0].blocks[0]


def _bytes(value: ir.Attribute, element_type: str, shape: tuple[int, ...]) -> bytes:
    if element_type != "bf16" and element_type not in _STORAGE:
        raise LoweringError(f"constant tensors of element type {element_type} are not supported")
    try:
        elements = ir.DenseElementsAttr(value)
    except ValueError:
        raise LoweringError(f"constant tensor {value}: write its elements, or pass the tensor as an argument") from None
    if element_type == "bf16":
        return _bfloat16(elements, shape)
    if element_type == "f16" and not elements.is_splat:
        return np.asarray(elements, dtype=np.float16).tobytes()
    if elements.is_splat:
        splat = elements.get_splat_value()
        return np.full(shape, splat.value, dtype=_STORAGE[element_type]).tobytes()
    return np.ascontiguousarray(np.array(elements), dtype=_STORAGE[element_type]).tobytes()


def _bfloat16(elements: ir.DenseElementsAttr, shape: tuple[int, ...]) -> bytes:
    if not elements.is_splat:
        raise LoweringError("non-uniform bf16 constant tensors are not supported: pass the tensor as an argument")
    as_float = np.full(shape, elements.get_splat_value().value, dtype=np.float32)
    # A uniform bf16 constant is exact in f32: its upper half is the bf16 pattern.
    return (as_float.view(np.uint32) >> 16).astype(np.uint16).tobytes()
