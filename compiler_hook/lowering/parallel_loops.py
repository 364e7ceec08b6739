"""Building, splitting and joining `scf.parallel` loops."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir


def bounds(op: ir.Operation) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
    """(lower bounds, upper bounds, steps), one of each per dimension."""
    rank = len(op.regions[0].blocks[0].arguments)
    operands = list(op.operands)
    return operands[:rank], operands[rank : 2 * rank], operands[2 * rank : 3 * rank]


def split_parallel(op: ir.Operation, order: Sequence[int], rank: int) -> ir.Operation:
    """Replaces a loop by one over its dimensions `order[:rank]` around one over `order[rank:]`; returns the outer one.

    `order[new] = old` dimension. Nothing changes when all dimensions stay outside in their order.
    """
    if rank == len(order):
        return op
    inside = [[values[old] for old in order] for values in bounds(op)]
    body = op.regions[0].blocks[0]
    with ir.InsertionPoint(op), op.location:
        outer = parallel_op(*(values[:rank] for values in inside))
    outer_block = outer.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(outer_block), op.location:
        inner = parallel_op(*(values[rank:] for values in inside))
    inner_block = inner.regions[0].blocks[0]
    for old, new in zip(order, [*outer_block.arguments, *inner_block.arguments], strict=True):
        body.arguments[old].replace_all_uses_with(new)
    _move_body(body, inner_block)
    op.erase()
    return outer


def append_body(head: ir.Operation, tail: ir.Operation) -> None:
    """Moves the body of `tail` behind that of `head`, over the same dimensions, and erases `tail`."""
    target, source = head.regions[0].blocks[0], tail.regions[0].blocks[0]
    for old, new in zip(list(source.arguments), list(target.arguments), strict=True):
        old.replace_all_uses_with(new)
    _move_body(source, target)
    tail.erase()


def parallel_op(lower: list[ir.Value], upper: list[ir.Value], step: list[ir.Value]) -> ir.Operation:
    """An empty `scf.parallel` at the current insertion point."""
    rank = len(lower)
    op = ir.Operation.create(
        "scf.parallel",
        operands=[*lower, *upper, *step],
        regions=1,
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([rank, rank, rank, 0])},
    )
    block = op.regions[0].blocks.append(*[ir.IndexType.get()] * rank, arg_locs=[ir.Location.current] * rank)
    with ir.InsertionPoint(block):
        ir.Operation.create("scf.reduce", regions=0)
    return op


def _move_body(source: ir.Block, target: ir.Block) -> None:
    """All operations but the terminator, to before the terminator of `target`."""
    terminator = list(target.operations)[-1].operation
    for op in list(source.operations)[:-1]:
        op.operation.move_before(terminator)
