"""Lets LLVM reorder sums and products that a loop carries, so that it can vectorise them."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.lowering.views import defining_op

FLAGS = "reassoc,contract,nsz"
"""Reordering and fused multiply-add; nothing that assumes the absence of NaN or infinities."""

_KINDS = {"arith.addf": "sum", "arith.subf": "sum", "arith.mulf": "product"}


def relax_reductions(function: ir.Operation) -> None:
    """Sets the flags on the operations of loop-carried sums and products only; other arithmetic stays exact."""
    flags = ir.Attribute.parse(f"#arith.fastmath<{FLAGS}>", function.context)
    contract = ir.Attribute.parse("#arith.fastmath<contract>", function.context)
    for loop in walk(function, "scf.for"):
        block = loop.regions[0].blocks[0]
        end = list(block.operations)[-1].operation
        for argument, result in zip(list(block.arguments)[1:], end.operands, strict=True):
            for operation in _chain(result, argument, None) or ():
                operation.attributes["fastmath"] = flags
                if _KINDS[operation.name] == "sum":
                    for operand in operation.operands:
                        factor = defining_op(operand)
                        if factor is not None and factor.name == "arith.mulf":
                            factor.attributes["fastmath"] = contract


def _chain(value: ir.Value, argument: ir.Value, kind: str | None) -> list[ir.Operation] | None:
    """Operations of one kind that lead from the carried argument to the value; None if others take part."""
    if value == argument:
        return []
    operation = defining_op(value)
    if operation is None:
        return None
    if operation.name == "scf.for":
        position = next(i for i, result in enumerate(operation.results) if result == value)
        return _chain(operation.operands[3 + position], argument, kind)
    found = _KINDS.get(operation.name)
    if found is None or kind not in (None, found):
        return None
    for operand in operation.operands:
        rest = _chain(operand, argument, found)
        if rest is not None:
            return [operation, *rest]
    return None
