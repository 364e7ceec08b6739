"""Python numbers in the element type of the tensor they meet.

Torch-MLIR keeps a Python number as an f64 constant, rounds it once per element, and compares in f64. PyTorch rounds the
number to the tensor's type first, so `x < 0.1` differs for an f32 x equal to 0.1; and a core without f64 could not run
either.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import functions, walk
from torch_pim.compiler_hook.lowering.views import defining_op


def narrow_numbers(module: ir.Module) -> None:
    """Rounds constants instead of rounding at run time, and compares in the tensor's own type; in place."""
    for function in functions(module):
        for op in walk(function.operation, "arith.truncf"):
            number = _number(op.operands[0])
            if number is not None:
                op.result.replace_all_uses_with(_constant(number, op.result.type, op))
                op.erase()
        for op in walk(function.operation, "arith.cmpf"):
            _compare_narrow(op)


def _compare_narrow(op: ir.Operation) -> None:
    sides = [(_number(operand), _widened(operand)) for operand in op.operands]
    narrow = next((value.type for _, value in sides if value is not None), None)
    if narrow is None or any(number is None and (v is None or v.type != narrow) for number, v in sides):
        return
    for position, (number, value) in enumerate(sides):
        op.operands[position] = value if value is not None else _constant(number, narrow, op)


def _number(value: ir.Value) -> float | None:
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.FloatAttr):
        return None
    return float(ir.FloatAttr(op.attributes["value"]).value)


def _widened(value: ir.Value) -> ir.Value | None:
    """What an extension widens."""
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == "arith.extf" else None


def _constant(number: float | None, element_type: ir.Type, user: ir.Operation) -> ir.Value:
    with ir.InsertionPoint(user), user.location:
        attribute = ir.FloatAttr.get(element_type, number)
        return ir.Operation.create("arith.constant", results=[element_type], attributes={"value": attribute}).result
