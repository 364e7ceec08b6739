"""Elementwise fusion that never recomputes work: costly producers stay out of contractions and broadcasts.

The stock pass fuses every single-use elementwise producer. Inside a contraction this recomputes the producer once per
output element (SiLU * up inside the next matmul). An opaque operation on the edge stops the pass there; it is removed
afterwards.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import entry_block, functions, run_passes

BARRIER = "pim.fusion_barrier"
_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")
_FREE = ("linalg.yield", "linalg.index", "arith.constant")
_CASTS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.extsi", "arith.extui", "arith.trunci")
_COSTLY = ("arith.divf", "arith.remf", "arith.divsi", "arith.remsi")


def fuse_elementwise(module: ir.Module) -> None:
    """Fuses elementwise linalg operations where no element is computed twice at notable cost."""
    _transpose_for_each_user(module)
    _insert_barriers(module)
    run_passes(module, "func.func(linalg-fuse-elementwise-ops),canonicalize,cse", "elementwise fusion")
    _remove_barriers(module)
    run_passes(module, "canonicalize,cse", "clean-up after fusion")


def _transpose_for_each_user(module: ir.Module) -> None:
    """Repeats pure transposes and broadcasts, so that each user reads the original; those left over merge again."""
    for function in functions(module):
        for view in list(entry_block(function).operations):
            op = view.operation
            if op.name != "linalg.generic" or not _moves_only(op):
                continue
            users = [use for use in op.results[0].uses if use.owner.operation.name == "linalg.generic"]
            for use in users[1:]:
                with ir.InsertionPoint(op):
                    use.owner.operation.operands[use.operand_number] = op.clone().operation.results[0]


def _moves_only(op: ir.Operation) -> bool:
    """A generic that stores the elements of one tensor in another order, and does nothing else."""
    block = op.regions[0].blocks[0]
    inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
    if inputs != 1 or len(op.results) != 1 or not isinstance(op.operands[0].type, ir.RankedTensorType):
        return False
    body = list(block.operations)
    return len(body) == 1 and body[0].operation.operands[0] == block.arguments[0]


def _insert_barriers(module: ir.Module) -> None:
    for function in functions(module):
        for op in list(entry_block(function).operations):
            if op.operation.name == "linalg.generic":
                _guard_operands(op.operation)


def _guard_operands(consumer: ir.Operation) -> None:
    maps = [ir.AffineMapAttr(a).value for a in consumer.attributes["indexing_maps"]]
    contraction = "reduction" in str(consumer.attributes["iterator_types"])
    inputs = ir.DenseI32ArrayAttr(consumer.attributes["operandSegmentSizes"])[0]
    for position in range(inputs):
        value = consumer.operands[position]
        if not _reuses_elements(maps[position]):
            continue
        body = _chain_operations(value)
        if body is None:
            continue
        costly = any(name.startswith("math.") or name in _COSTLY for name in body)
        if costly or (contraction and any(name not in _FREE + _CASTS for name in body)):
            with ir.InsertionPoint(consumer), consumer.location:
                barrier = ir.Operation.create(BARRIER, results=[value.type], operands=[value])
            consumer.operands[position] = barrier.result


def _reuses_elements(indexing_map: ir.AffineMap) -> bool:
    """True when an operand element is read by several iterations: some loop dimension does not appear in its map."""
    text = str(ir.AffineMapAttr.get(indexing_map))
    results = text.split("->", 1)[1]
    return any(f"d{dim}" not in _tokens(results) for dim in range(indexing_map.n_dims))


def _tokens(text: str) -> set[str]:
    for character in "(),+-*<>":
        text = text.replace(character, " ")
    return set(text.split())


def _chain_operations(value: ir.Value) -> list[str] | None:
    """Body operations of the elementwise chain that fusion would pull in through `value`; None if nothing would be."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    if op.name in _RESHAPES:
        return _chain_operations(op.operands[0])
    if op.name != "linalg.generic" or "reduction" in str(op.attributes["iterator_types"]):
        return None
    if sum(1 for result in op.results for _ in result.uses) != 1:
        return None
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
    for position in range(inputs):
        names += _chain_operations(op.operands[position]) or []
    return names


def _remove_barriers(module: ir.Module) -> None:
    for function in functions(module):
        for op in list(entry_block(function).operations):
            if op.operation.name == BARRIER:
                op.operation.results[0].replace_all_uses_with(op.operation.operands[0])
                op.operation.erase()
