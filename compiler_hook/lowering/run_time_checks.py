"""Checks of what only run-time data can break: indices read from memory, and integer divisors.

Without them a wrong index reads or writes foreign memory, and a division by zero ends the process.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import walk

_SIGNED_DIVISIONS = ("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi")
_UNSIGNED_DIVISIONS = ("arith.divui", "arith.remui", "arith.ceildivui")
# Values of arith.cmpi's predicate attribute.
_EQ, _NE, _SLT, _SGE, _ULT = 0, 1, 2, 5, 6


def check_data(function: ir.OpView) -> None:
    """Asserts, in place, that indices from data are in range and divisors from data are not zero.

    A division of the smallest integer by -1, which processors refuse as well, wraps around as it does in PyTorch.
    """
    root = function.operation
    origin = _Origin()
    checked = _checked_values(root)
    seen: set[tuple[ir.Block, ir.Value, ir.Value, int]] = set()
    for access in walk(root, "memref.load", "memref.store"):
        buffer, *indices = access.operands if access.name == "memref.load" else list(access.operands)[1:]
        for dimension, index in enumerate(indices):
            key = (access.block, buffer, index, dimension)
            if key not in seen and not _is_checked(index, checked) and origin.is_data(index):
                seen.add(key)
                _assert_in_range(access, buffer, index, dimension)
    for division in walk(root, *_SIGNED_DIVISIONS, *_UNSIGNED_DIVISIONS):
        if origin.is_data(division.operands[1]):
            _assert_divisor(division)
            if division.name in _SIGNED_DIVISIONS:
                _divide_by_minus_one(division)


class _Origin:
    """Which values depend on what memory holds or on numbers that the caller gives, beside loop counters."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def is_data(self, value: ir.Value) -> bool:
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._depends(value)
        return found

    def _depends(self, value: ir.Value) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block):
            loop = owner.owner.operation.name
            # Carried values of loops come after the counter.
            is_counter = loop == "scf.parallel" or (loop == "scf.for" and ir.BlockArgument(value).arg_number == 0)
            return not is_counter and not isinstance(value.type, ir.MemRefType)
        op = owner.operation
        if op.name == "memref.dim":
            return False
        return op.name == "memref.load" or bool(op.regions) or any(self.is_data(operand) for operand in op.operands)


def _checked_values(root: ir.Operation) -> set[ir.Value]:
    """Values that existing assertions bound on both sides."""
    below: set[ir.Value] = set()
    above: set[ir.Value] = set()
    for assertion in walk(root, "cf.assert"):
        condition = assertion.operands[0].owner
        if isinstance(condition, ir.Block) or condition.operation.name != "arith.cmpi":
            continue
        predicate = ir.IntegerAttr(condition.operation.attributes["predicate"]).value
        {_SLT: above, _SGE: below}.get(predicate, set()).update(_with_source(condition.operation.operands[0]))
    return below & above


def _is_checked(index: ir.Value, checked: set[ir.Value]) -> bool:
    return any(value in checked for value in _with_source(index))


def _with_source(value: ir.Value) -> list[ir.Value]:
    """The value and the integer that it is a cast of."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "arith.index_cast":
        return [value, owner.operation.operands[0]]
    return [value]


def _assert_in_range(access: ir.Operation, buffer: ir.Value, index: ir.Value, dimension: int) -> None:
    memref = ir.MemRefType(buffer.type)
    with ir.InsertionPoint(access), access.location:
        if memref.is_dynamic_dim(dimension):
            position = _constant(ir.IndexType.get(), dimension)
            size = ir.Operation.create("memref.dim", results=[index.type], operands=[buffer, position]).result
            message = f"an index is out of range in dimension {dimension} of a tensor"
        else:
            size = _constant(index.type, memref.shape[dimension])
            message = f"an index is out of range for a dimension of size {memref.shape[dimension]}"
        # Unsigned, negative numbers are large ones.
        _assert(_compare(_ULT, index, size), message)


def _assert_divisor(division: ir.Operation) -> None:
    divisor = division.operands[1]
    with ir.InsertionPoint(division), division.location:
        _assert(_compare(_NE, divisor, _constant(divisor.type, 0)), "an integer is divided by zero")


def _divide_by_minus_one(division: ir.Operation) -> None:
    dividend, divisor = division.operands
    kind = divisor.type
    with ir.InsertionPoint(division), division.location:
        minus_one = _compare(_EQ, divisor, _constant(kind, -1))
        division.operands[1] = _select(minus_one, _constant(kind, 1), divisor)
    if division.name == "arith.remsi":
        return
    result = division.results[0]
    with ir.InsertionPoint.after(division), division.location:
        zero = _constant(kind, 0)
        negated = ir.Operation.create("arith.subi", results=[kind], operands=[zero, dividend]).result
        chosen = ir.Operation.create("arith.select", results=[kind], operands=[minus_one, negated, negated])
    result.replace_all_uses_with(chosen.result)
    chosen.operands[2] = result


def _constant(kind: ir.Type, value: int) -> ir.Value:
    attributes = {"value": ir.IntegerAttr.get(kind, value)}
    return ir.Operation.create("arith.constant", results=[kind], attributes=attributes).result


def _compare(predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
    attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)}
    truth = ir.IntegerType.get_signless(1)
    return ir.Operation.create("arith.cmpi", results=[truth], operands=[left, right], attributes=attributes).result


def _select(condition: ir.Value, chosen: ir.Value, other: ir.Value) -> ir.Value:
    return ir.Operation.create("arith.select", results=[chosen.type], operands=[condition, chosen, other]).result


def _assert(condition: ir.Value, message: str) -> None:
    ir.Operation.create("cf.assert", operands=[condition], attributes={"msg": ir.StringAttr.get(message)})
