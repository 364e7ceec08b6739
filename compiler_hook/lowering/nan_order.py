"""NaN counts as the greatest number where PyTorch orders: in sort, topk, argmax, argmin and max and min with positions.

Torch-MLIR compares with ordered predicates there, which are false for NaN, so a NaN would stay where it is in a sort
and be skipped in a search.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import functions, walk

# Values of arith.cmpf's predicate attribute.
_OGT, _OGE, _OLT, _OLE, _ORD, _UGT, _ULT, _UNO = 2, 3, 4, 5, 7, 9, 11, 14
_SEARCH = {_OGT: ("arith.maximumf", _UGT), _OLT: ("arith.minimumf", _ULT)}


def order_nan(module: ir.Module) -> None:
    """Rewrites the comparisons of all sorts and searches of a linalg-on-tensors module, in place."""
    for function in functions(module):
        for sort in walk(function.operation, "tm_tensor.sort"):
            for comparison in walk(sort, "arith.cmpf"):
                _keep_order(comparison)
        for reduction in walk(function.operation, "linalg.generic"):
            values = {(op.name, *op.operands) for op in walk(reduction, "arith.maximumf", "arith.minimumf")}
            for comparison in walk(reduction, "arith.cmpf"):
                extreme, unordered = _SEARCH.get(_predicate(comparison), ("", 0))
                if (extreme, *comparison.operands) in values:
                    _first_nan_wins(comparison, unordered)


def _predicate(comparison: ir.Operation) -> int:
    return int(ir.IntegerAttr(comparison.attributes["predicate"]).value)


def _keep_order(comparison: ir.Operation) -> None:
    """A sort keeps two neighbours: descending where the left one is NaN, ascending where the right one is, too."""
    left, right = comparison.operands
    greatest = {_OGE: left, _OLE: right}.get(_predicate(comparison))
    if greatest is not None:
        _combine(comparison, "arith.ori", _UNO, greatest)


def _first_nan_wins(comparison: ir.Operation, unordered: int) -> None:
    """A search takes the new value: where it is greater or NaN, unless the value that it has is NaN already."""
    _, best = comparison.operands
    _combine(comparison, "arith.andi", _ORD, best)
    comparison.attributes["predicate"] = _attribute(comparison, unordered)


def _combine(comparison: ir.Operation, operation: str, predicate: int, value: ir.Value) -> None:
    """Replaces a comparison by (comparison `operation` cmpf `predicate` value, value)."""
    result = comparison.results[0]
    with ir.InsertionPoint.after(comparison), comparison.location:
        check = ir.Operation.create(
            "arith.cmpf",
            results=[result.type],
            operands=[value, value],
            attributes={name: comparison.attributes[name] for name in comparison.attributes.keys()}
            | {"predicate": _attribute(comparison, predicate)},
        )
        both = ir.Operation.create(operation, results=[result.type], operands=[check.result, check.result])
    result.replace_all_uses_with(both.result)
    both.operands[0] = result


def _attribute(comparison: ir.Operation, predicate: int) -> ir.Attribute:
    return ir.IntegerAttr.get(comparison.attributes["predicate"].type, predicate)
