"""How far an access moves in memory, in elements, when a loop counter grows by one."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.memory_effects import ElementAccess
from torch_pim.compiler_hook.codegen.rewriting import is_inside
from torch_pim.compiler_hook.lowering.views import constant_index, defining_op


def element_stride(access: ElementAccess, counter: ir.Value) -> int | None:
    """Elements per step of the counter (an induction variable); None where that is unknown or not constant."""
    memref = ir.MemRefType(access.memref.type)
    strides, _ = memref.get_strides_and_offset()
    total = 0
    for index, stride in zip(access.indices, strides, strict=True):
        factor = _coefficient(index, counter)
        if factor is None or (factor and stride == ir.MemRefType.get_dynamic_stride_or_offset()):
            return None
        total += factor * stride if factor else 0
    return total


def _coefficient(value: ir.Value, counter: ir.Value) -> int | None:
    if value == counter:
        return 1
    operation = defining_op(value)
    if operation is None or not is_inside(value, counter.owner.owner.operation):
        return 0
    parts = [_coefficient(operand, counter) for operand in operation.operands]
    if not any(part != 0 for part in parts) and not operation.name.startswith("memref."):
        return 0
    if None in parts or operation.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = parts[0] or 0, parts[1] or 0
    if operation.name == "arith.addi":
        return left + right
    if operation.name == "arith.subi":
        return left - right
    scale = constant_index(operation.operands[1 if left else 0])
    return None if scale is None or (left and right) else (left or right) * scale
