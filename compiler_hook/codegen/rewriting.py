"""Small steps on MLIR operations that the rewrites of this package share."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from torch_pim.compiler_hook.errors import CodegenError
from torch_pim.compiler_hook.lowering.views import constant_index

_SIGNED_LESS = 2
"""Predicate slt of arith.cmpi."""


class IndexBuilder:
    """Emits index arithmetic at one insertion point; canonicalisation folds what is constant."""

    def __init__(self, point: ir.InsertionPoint, location: ir.Location) -> None:
        self._point = point
        self._location = location
        self._index = ir.IndexType.get(location.context)

    def constant(self, value: int) -> ir.Value:
        return self._create("arith.constant", [], {"value": ir.IntegerAttr.get(self._index, value)})

    def add(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._create("arith.addi", [left, right])

    def subtract(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._create("arith.subi", [left, right])

    def multiply(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._create("arith.muli", [left, right])

    def divide(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Quotient of values that are not negative."""
        return self._create("arith.divui", [left, right])

    def remainder(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Remainder of values that are not negative."""
        return self._create("arith.remui", [left, right])

    def divide_up(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Quotient rounded up, of values that are not negative."""
        return self.divide(self.add(left, self.subtract(right, self.constant(1))), right)

    def minimum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._create("arith.minsi", [left, right])

    def maximum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._create("arith.maxsi", [left, right])

    def trip_count(self, lower: ir.Value, upper: ir.Value, step: ir.Value) -> ir.Value:
        """Number of iterations of a loop, 0 when the range is empty."""
        return self.divide_up(self.maximum(self.constant(0), self.subtract(upper, lower)), step)

    def induction(self, iteration: ir.Value, lower: ir.Value, step: ir.Value) -> ir.Value:
        """Value of the induction variable in the given iteration."""
        return self.add(lower, self.multiply(iteration, step))

    def _create(
        self, name: str, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute] | None = None
    ) -> ir.Value:
        with self._point, self._location:
            operation = ir.Operation.create(
                name, results=[self._index], operands=list(operands), attributes=attributes or {}
            )
        return operation.results[0]


def new_loop(
    point: ir.InsertionPoint, location: ir.Location, lower: ir.Value, upper: ir.Value, step: ir.Value
) -> tuple[ir.Operation, ir.Block]:
    """An empty `scf.for`; the caller fills the block and ends it with `end_block`."""
    with point, location:
        loop = ir.Operation.create("scf.for", results=[], operands=[lower, upper, step], regions=1)
    return loop, loop.regions[0].blocks.append(ir.IndexType.get(location.context), arg_locs=[location])


def branch_if_less(point: ir.InsertionPoint, location: ir.Location, left: ir.Value, right: ir.Value) -> ir.Block:
    """The block of an `scf.if left < right` (signed); the caller fills it and ends it with `end_block`."""
    with point, location:
        less = ir.Operation.create(
            "arith.cmpi",
            results=[ir.IntegerType.get_signless(1)],
            operands=[left, right],
            attributes={"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SIGNED_LESS)},
        )
        branch = ir.Operation.create("scf.if", operands=[less.result], regions=2)
    return branch.regions[0].blocks.append()


def end_block(block: ir.Block, location: ir.Location, terminator: str = "scf.yield") -> None:
    with ir.InsertionPoint(block), location:
        ir.Operation.create(terminator, results=[], operands=[])


def parallel_bounds(loop: ir.Operation) -> list[tuple[ir.Value, ir.Value, ir.Value]]:
    """(lower, upper, step) per dimension of an `scf.parallel`; CodegenError if it carries a reduction."""
    if len(loop.results):
        raise CodegenError("an scf.parallel with a reduction is not canonical: expected loops that only store")
    rank = len(loop.regions[0].blocks[0].arguments)
    operands = list(loop.operands)
    return list(zip(operands[:rank], operands[rank : 2 * rank], operands[2 * rank :], strict=True))


def constant_trips(lower: ir.Value, upper: ir.Value, step: ir.Value) -> int | None:
    """Number of iterations of a loop whose bounds are constants, else None."""
    first, end, by = constant_index(lower), constant_index(upper), constant_index(step)
    if first is None or end is None or by is None:
        return None
    return max(0, -(-(end - first) // by))


def move_body(source: ir.Block, target: ir.Block, dropped: str) -> None:
    """Moves all operations except the terminator `dropped` to the end of `target`."""
    for view in list(source.operations):
        operation = view.operation
        if operation.name == dropped:
            operation.erase()
        else:
            target.append(operation)


def is_inside(value: ir.Value, region_owner: ir.Operation) -> bool:
    """True if the value is defined in a region of the operation, at any depth."""
    owner = value.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    while block is not None:
        parent = block.owner.operation
        if parent == region_owner:
            return True
        block = None if parent.name in ("func.func", "builtin.module") else parent.block
    return False
