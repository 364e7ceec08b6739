"""Long reductions into few results get a parallel first step: partial results, combined by a short second step.

Without it a sum over a whole tensor is one sequential loop, which no device can share between its cores.
"""

from __future__ import annotations

import math

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.linalg_form import fill_tensor
from torch_pim.compiler_hook.lowering.passes import functions, walk
from torch_pim.compiler_hook.lowering.sibling_fusion import MIN_PARALLEL

PARTS = 64
"""Partial results per result."""
MIN_SPLIT = 1 << 16
"""Reductions shorter than this stay whole: the second step would cost more than sharing the first one saves."""

_IDENTITIES: dict[str, float] = {
    "arith.addf": 0.0, "arith.mulf": 1.0, "arith.addi": 0, "arith.muli": 1,
    "arith.maximumf": -math.inf, "arith.maxnumf": -math.inf, "arith.minimumf": math.inf, "arith.minnumf": math.inf,
    "arith.ori": 0, "arith.andi": -1,
}  # fmt: skip
"""Combining operation -> its neutral element."""


def split_long_reductions(module: ir.Module) -> None:
    """Rewrites every long linalg reduction into fewer than MIN_PARALLEL results, in place."""
    for function in functions(module):
        for op in walk(function.operation, "linalg.generic"):
            combiner = _combiner(op)
            if combiner is None or not _is_long_and_narrow(op):
                continue
            dimension = _whole_dimension(op)
            if dimension is not None:
                _promote(op, dimension, combiner)
                continue
            dimension = _divisible_dimension(op)
            if dimension is not None:
                _promote(_expanded(op, dimension), dimension, combiner)


def _kinds(op: ir.Operation) -> list[bool]:
    """True per loop that is a reduction."""
    return ["reduction" in str(kind) for kind in op.attributes["iterator_types"]]


def _maps(op: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(a).value for a in op.attributes["indexing_maps"]]


def _pure_dimension(expression: ir.AffineExpr) -> int | None:
    return ir.AffineDimExpr(expression).position if isinstance(expression, ir.AffineDimExpr) else None


def _extents(op: ir.Operation) -> list[int] | None:
    """Trip count per loop, from operand shapes; None when one is dynamic or hidden in an affine expression."""
    extents: dict[int, int] = {}
    for operand, affine_map in zip(op.operands, _maps(op), strict=True):
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        for size, expression in zip(operand.type.shape, affine_map.results, strict=True):
            dimension = _pure_dimension(expression)
            if dimension is not None:
                extents[dimension] = size
    found = [extents.get(loop, -1) for loop in range(len(_kinds(op)))]
    return None if any(size < 0 for size in found) else found


def _combiner(op: ir.Operation) -> str | None:
    """Name of the associative operation that folds each element into the single result; None if there is none."""
    if len(op.results) != 1 or not any(_kinds(op)) or walk(op, "linalg.index"):
        return None
    block = op.regions[0].blocks[0]
    accumulator = list(block.arguments)[-1]
    owner = list(block.operations)[-1].operation.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name not in _IDENTITIES or owner.operation.block != block:
        return None
    uses = [use.owner.operation for use in accumulator.uses]
    return owner.operation.name if len(uses) == 1 and uses[0] == owner.operation else None


def _is_long_and_narrow(op: ir.Operation) -> bool:
    extents = _extents(op)
    if extents is None:
        return False
    reduced = [size for size, is_reduction in zip(extents, _kinds(op), strict=True) if is_reduction]
    kept = [size for size, is_reduction in zip(extents, _kinds(op), strict=True) if not is_reduction]
    return math.prod(kept) < MIN_PARALLEL and math.prod(reduced) >= MIN_SPLIT


def _whole_dimension(op: ir.Operation) -> int | None:
    """The outermost reduction loop that makes a parallel range by itself and leaves work for each of its iterations."""
    extents = _extents(op) or []
    reductions = [loop for loop, is_reduction in enumerate(_kinds(op)) if is_reduction]
    total = math.prod(extents[loop] for loop in reductions)
    return next((r for r in reductions if PARTS <= extents[r] and extents[r] * PARTS <= total), None)


def _divisible_dimension(op: ir.Operation) -> int | None:
    """The longest reduction loop that PARTS divides and that indexes its operands directly."""
    extents = _extents(op) or []
    candidates = [loop for loop, is_reduction in enumerate(_kinds(op)) if is_reduction and extents[loop] % PARTS == 0]
    direct = [loop for loop in candidates if all(_is_direct(affine_map, loop) for affine_map in _maps(op))]
    return max(direct, key=lambda loop: extents[loop], default=None)


def _is_direct(affine_map: ir.AffineMap, loop: int) -> bool:
    """The loop appears in the map as a plain dimension or not at all."""
    name = f"d{loop}"
    return all(
        _pure_dimension(expression) is not None or name not in str(expression) for expression in affine_map.results
    )


def _expanded(op: ir.Operation, loop: int) -> ir.Operation:
    """The same reduction with the loop split in two: PARTS chunks, and the elements of a chunk."""
    rank = len(_kinds(op))
    operands: list[ir.Value] = []
    maps: list[ir.AffineMap] = []
    with ir.InsertionPoint(op), op.location:
        shift = ir.AffineMap.get(rank + 1, 0, [ir.AffineExpr.get_dim(i if i <= loop else i + 1) for i in range(rank)])
        for operand, affine_map in zip(op.operands, _maps(op), strict=True):
            position = next((i for i, e in enumerate(affine_map.results) if _pure_dimension(e) == loop), None)
            results = [expression.compose(shift) for expression in affine_map.results]
            if position is not None:
                operand = _chunked(operand, position)
                results.insert(position + 1, ir.AffineExpr.get_dim(loop + 1))
            operands.append(operand)
            maps.append(ir.AffineMap.get(rank + 1, 0, results))
        kinds = list(op.attributes["iterator_types"])
        made = _generic(op, operands, maps, [*kinds[: loop + 1], kinds[loop], *kinds[loop + 1 :]], op.results[0].type)
    op.results[0].replace_all_uses_with(made.result)
    op.erase()
    return made


def _chunked(value: ir.Value, position: int) -> ir.Value:
    """The tensor with dimension `position` seen as PARTS chunks."""
    shape = list(value.type.shape)
    split = [*shape[:position], PARTS, shape[position] // PARTS, *shape[position + 1 :]]
    groups = [[i] if i < position else [i, i + 1] if i == position else [i + 1] for i in range(len(shape))]
    i64 = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in group]) for group in groups]
    )
    return ir.Operation.create(
        "tensor.expand_shape",
        results=[ir.RankedTensorType.get(split, value.type.element_type)],
        operands=[value],
        attributes={"reassociation": reassociation, "static_output_shape": ir.DenseI64ArrayAttr.get(split)},
    ).result


def _promote(op: ir.Operation, loop: int, combiner: str) -> None:
    """Makes one reduction loop parallel: partial results per iteration, then a reduction over them."""
    extents = _extents(op)
    assert extents is not None
    result = op.results[0].type
    kinds = list(op.attributes["iterator_types"])
    with ir.InsertionPoint(op), op.location:
        maps = _maps(op)
        kept = list(maps[-1].results)
        # Partial results are laid out in loop order, so that their fill and the accumulation are one nest.
        place = sum((_pure_dimension(expression) or 0) < loop for expression in kept)
        shape = [*result.shape[:place], extents[loop], *result.shape[place:]]
        partial_type = ir.RankedTensorType.get(shape, result.element_type)
        maps[-1] = ir.AffineMap.get(len(kinds), 0, [*kept[:place], ir.AffineExpr.get_dim(loop), *kept[place:]])
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        reduction = kinds[loop]
        partial_kinds = [parallel if i == loop else kind for i, kind in enumerate(kinds)]
        initial = list(op.operands)[-1]
        start = fill_tensor(partial_type, _identity(combiner, result.element_type))
        partial = _generic(op, [*list(op.operands)[:-1], start], maps, partial_kinds, partial_type)
        combined = _combine(partial.result, initial, combiner, place, reduction, parallel)
    op.results[0].replace_all_uses_with(combined)
    op.erase()


def _identity(combiner: str, element_type: ir.Type) -> ir.Value:
    number = _IDENTITIES[combiner]
    if isinstance(element_type, ir.IntegerType):
        attribute: ir.Attribute = ir.IntegerAttr.get(element_type, int(number))
    else:
        attribute = ir.FloatAttr.get(element_type, number)
    return ir.Operation.create("arith.constant", results=[element_type], attributes={"value": attribute}).result


def _combine(
    partial: ir.Value, initial: ir.Value, combiner: str, place: int, reduction: ir.Attribute, parallel: ir.Attribute
) -> ir.Value:
    """Folds dimension `place` of the partial results into the initial value."""
    rank = initial.type.rank
    kept = [ir.AffineExpr.get_dim(i) for i in range(rank)]
    source = ir.AffineMap.get(rank + 1, 0, [*kept[:place], ir.AffineExpr.get_dim(rank), *kept[place:]])
    target = ir.AffineMap.get(rank + 1, 0, kept)
    op = ir.Operation.create(
        "linalg.generic",
        results=[initial.type],
        operands=[partial, initial],
        regions=1,
        attributes=_attributes([source, target], [*[parallel] * rank, reduction], 1),
    )
    element = initial.type.element_type
    block = op.regions[0].blocks.append(element, element, arg_locs=[ir.Location.current] * 2)
    with ir.InsertionPoint(block):
        value = ir.Operation.create(combiner, results=[element], operands=list(block.arguments)).result
        ir.Operation.create("linalg.yield", operands=[value])
    return op.result


def _generic(
    op: ir.Operation,
    operands: list[ir.Value],
    maps: list[ir.AffineMap],
    kinds: list[ir.Attribute],
    result: ir.Type,
) -> ir.Operation:
    """A generic with the body of `op` on other operands; takes the body away from a copy, `op` stays whole."""
    made = ir.Operation.create(
        "linalg.generic",
        results=[result],
        operands=operands,
        regions=1,
        attributes=_attributes(maps, kinds, len(operands) - 1),
    )
    body = op.clone().operation
    body.regions[0].blocks[0].append_to(made.regions[0])
    body.erase()
    return made


def _attributes(maps: list[ir.AffineMap], kinds: list[ir.Attribute], inputs: int) -> dict[str, ir.Attribute]:
    return {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(affine_map) for affine_map in maps]),
        "iterator_types": ir.ArrayAttr.get(kinds),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([inputs, 1]),
    }
