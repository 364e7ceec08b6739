"""Lets LLVM reorder sums and products that a long loop carries, so that it can vectorise them."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.rewriting import constant_trips
from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.lowering.views import defining_op

FLAGS = "reassoc,contract,nsz"
"""Reordering and fused multiply-add; nothing that assumes the absence of NaN or infinities."""
EXACT_TRIPS = 32
"""Loops of up to so many iterations keep their order: LLVM unrolls them and would then choose another order for
whole vectors than for what is left of a row, so that results would depend on how the range is split."""

_KINDS = {"arith.addf": "sum", "arith.subf": "sum", "arith.mulf": "product"}


def relax_reductions(function: ir.Operation) -> None:
    """Sets the flags on the operations of loop-carried sums and products only; other arithmetic stays exact."""
    flags = ir.Attribute.parse(f"#arith.fastmath<{FLAGS}>", function.context)
    contract = ir.Attribute.parse("#arith.fastmath<contract>", function.context)
    for loop in walk(function, "scf.for"):
        trips = constant_trips(*list(loop.operands)[:3])
        if trips is not None and trips <= EXACT_TRIPS:
            continue
        block = loop.regions[0].blocks[0]
        end = list(block.operations)[-1].operation
        for argument, result in zip(list(block.arguments)[1:], end.operands, strict=True):
            for operation in _chain(result, argument, None) or ():
                operation.attributes["fastmath"] = flags
                for operand in operation.operands:
                    factor = defining_op(operand)
                    if _KINDS[operation.name] == "sum" and factor is not None and factor.name == "arith.mulf":
                        factor.attributes["fastmath"] = contract


def _chain(value: ir.Value, argument: ir.Value, kind: str | None) -> list[ir.Operation] | None:
    """Operations of one kind that lead from the carried argument to the value; None if others take part."""
    if value == argument:
        return []
    operation = defining_op(value)
    found = None if operation is None else _KINDS.get(operation.name)
    if operation is None or found is None or kind not in (None, found):
        return None
    for operand in operation.operands:
        rest = _chain(operand, argument, found)
        if rest is not None:
            return [operation, *rest]
    return None
