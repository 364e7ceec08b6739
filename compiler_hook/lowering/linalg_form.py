"""Rewrites on tensors before bufferization: reductions innermost, one initial value per accumulator, own results."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import entry_block, functions, walk

_DESTINATION_STYLE = ("linalg.", "tm_tensor.")
_SAME_ELEMENTS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast", "tensor.reshape")


def reductions_innermost(module: ir.Module) -> None:
    """Orders the loops of every linalg.generic parallel first, so that the parallel range encloses the reduction."""
    for function in functions(module):
        for op in walk(function.operation, "linalg.generic"):
            kinds = list(op.attributes["iterator_types"])
            order = sorted(range(len(kinds)), key=lambda i: "parallel" not in str(kinds[i]))
            if order != list(range(len(kinds))):
                _permute_loops(op, kinds, order)


def _permute_loops(op: ir.Operation, kinds: list[ir.Attribute], order: list[int]) -> None:
    """`order[new] = old` loop position."""
    new_of_old = {old: new for new, old in enumerate(order)}
    with op.context:
        rename = ir.AffineMap.get(len(order), 0, [ir.AffineExpr.get_dim(new_of_old[old]) for old in range(len(order))])
        maps = []
        for attribute in op.attributes["indexing_maps"]:
            old_map = ir.AffineMapAttr(attribute).value
            exprs = [expr.compose(rename) for expr in old_map.results]
            maps.append(ir.AffineMapAttr.get(ir.AffineMap.get(len(order), 0, exprs)))
        op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
        op.attributes["iterator_types"] = ir.ArrayAttr.get([kinds[old] for old in order])
        i64 = ir.IntegerType.get_signless(64)
        for index in walk(op, "linalg.index"):
            old = ir.IntegerAttr(index.attributes["dim"]).value
            index.attributes["dim"] = ir.IntegerAttr.get(i64, new_of_old[old])


def private_initial_values(module: ir.Module) -> None:
    """Gives each linalg operation its own fill and empty tensor, so that bufferization need not copy shared ones."""
    for function in functions(module):
        for op in list(entry_block(function).operations):
            operation = op.operation
            if not operation.name.startswith(_DESTINATION_STYLE) or "operandSegmentSizes" not in operation.attributes:
                continue
            inputs = ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])[0]
            for position in range(inputs, len(operation.operands)):
                operation.operands[position] = _private_copy(operation.operands[position], operation)


def _private_copy(value: ir.Value, user: ir.Operation) -> ir.Value:
    """The value itself where it is no initial value, else a clone of the operations that make it, next to its user."""
    source = _initialiser(value)
    if source is None:
        return value
    with ir.InsertionPoint(user), user.location:
        filled = _filled_value(source)
        if filled is not None and value.type.has_static_shape:
            # Filling the reshaped tensor keeps fill and accumulation over the same loops.
            return fill_tensor(value.type, filled)
        clone = source.clone().operation
    for position, operand in enumerate(clone.operands):
        clone.operands[position] = _private_copy(operand, clone)
    return clone.results[0]


def _initialiser(value: ir.Value) -> ir.Operation | None:
    """The operation behind an initial value: an empty tensor, a fill, or a reshape of one of them."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    if op.name == "tensor.empty":
        return op
    if op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        return op if _initialiser(op.operands[0]) is not None else None
    return op if op.name == "linalg.generic" and _is_fill(op) else None


def _filled_value(op: ir.Operation) -> ir.Value | None:
    """The scalar of a fill, seen through reshapes; None for an empty tensor."""
    while op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        op = op.operands[0].owner.operation
    if op.name != "linalg.generic":
        return None
    block = op.regions[0].blocks[0]
    yielded = block.operations[0].operation.operands[0]
    inputs = zip(block.arguments, op.operands, strict=False)
    return next((operand for argument, operand in inputs if argument == yielded), yielded)


def fill_tensor(tensor: ir.Type, scalar: ir.Value) -> ir.Value:
    """A new tensor of the static type with every element set to the scalar, at the current insertion point."""
    rank = tensor.rank
    empty = ir.Operation.create("tensor.empty", results=[tensor])
    fill = ir.Operation.create(
        "linalg.generic",
        results=[tensor],
        operands=[empty.result],
        regions=1,
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))]),
            "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1]),
        },
    )
    block = fill.regions[0].blocks.append(tensor.element_type, arg_locs=[ir.Location.current])
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[scalar])
    return fill.result


def _is_fill(op: ir.Operation) -> bool:
    """A generic with no tensor input that yields a value from outside its body."""
    inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
    if len(op.results) != 1 or any(isinstance(op.operands[i].type, ir.RankedTensorType) for i in range(inputs)):
        return False
    body = list(op.regions[0].blocks[0].operations)
    output = op.regions[0].blocks[0].arguments[inputs]
    return len(body) == 1 and body[0].operation.operands[0] != output


def own_results(module: ir.Module) -> None:
    """Copies results that are (views of) arguments, constants or other results: a caller may write to what it gets."""
    for function in functions(module):
        for op in walk(function.operation, "func.return"):
            taken: set[ir.Value] = set()
            for position, value in enumerate(op.operands):
                origin = _origin(value)
                owner = origin.owner
                if origin in taken or isinstance(owner, ir.Block) or owner.operation.name == "arith.constant":
                    if isinstance(value.type, ir.RankedTensorType):
                        op.operands[position] = _copy(value, op)
                taken.add(origin)


def _origin(value: ir.Value) -> ir.Value:
    """The tensor that a chain of reshapes and casts shows."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _SAME_ELEMENTS:
        value = value.owner.operation.operands[0]
    return value


def _copy(value: ir.Value, user: ir.Operation) -> ir.Value:
    with ir.InsertionPoint(user), user.location:
        copy = ir.Operation.create(
            "bufferization.alloc_tensor",
            results=[value.type],
            operands=[value],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1, 0])},
        )
    return copy.result
