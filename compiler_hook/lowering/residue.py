"""What is left at function level besides parallel loops becomes nests too, so that nothing runs uncounted.

Index arithmetic, views, allocations and shape tensors are the program's own bookkeeping and stay. Everything else
(sequential loops, scalar loads, arithmetic and stores) is gathered into runs, each wrapped in `scf.execute_region`.
A scalar that leaves its run goes through a one-element buffer.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import entry_block, walk
from torch_pim.compiler_hook.lowering.views import VIEWS, defining_op

SPILL = "pim.spill"
"""Attribute on loads of spilled scalars: outlining moves them into the nest that uses them."""

_PROGRAM = (
    *VIEWS, "memref.alloc", "memref.alloca", "memref.dealloc", "memref.get_global", "memref.dim", "arith.constant",
    "func.return", "return", "cf.assert", "ub.poison", "scf.parallel",
)  # fmt: skip
_INDEX_LIKE = ("index",)


def is_program_op(op: ir.Operation, needed: set[ir.Operation] | frozenset[ir.Operation] = frozenset()) -> bool:
    """True for operations that the program interpreter carries out itself."""
    if op.name in _PROGRAM or SPILL in op.attributes or op in needed:
        return True
    if op.name in ("memref.load", "memref.store"):
        memref = op.operands[1] if op.name == "memref.store" else op.operands[0]
        return str(ir.MemRefType(memref.type).element_type) in _INDEX_LIKE
    return False


def bookkeeping(function: ir.OpView) -> set[ir.Operation]:
    """Scalar operations on which views, allocation sizes or loop bounds depend (and pure shape arithmetic)."""
    needed: set[ir.Operation] = set()
    pending: list[ir.Value] = []
    for view in entry_block(function).operations:
        op = view.operation
        if op.name in ("scf.parallel", "cf.assert", "memref.alloc", "memref.store", *VIEWS):
            if op.name == "memref.store" and not is_program_op(op):
                continue
            pending += [v for v in op.operands if not isinstance(v.type, ir.MemRefType)]
    while pending:
        op = defining_op(pending.pop())
        if op is None or op in needed or op.name in _PROGRAM or op.regions:
            continue
        needed.add(op)
        pending += [v for v in op.operands if not isinstance(v.type, ir.MemRefType)]
    return needed


def wrap_residue(function: ir.OpView) -> None:
    """Wraps each maximal run of residue in an `scf.execute_region`, in place."""
    needed = bookkeeping(function)
    run: list[ir.Operation] = []
    for view in list(entry_block(function).operations):
        op = view.operation
        if not is_program_op(op, needed):
            run.append(op)
        elif run and op.name not in ("scf.parallel", "func.return", "return") and _can_rise(op, run):
            op.move_before(run[0])
        elif run:
            _wrap(run)
            run = []
    if run:
        _wrap(run)


def _can_rise(op: ir.Operation, run: list[ir.Operation]) -> bool:
    """A pure operation that uses nothing of the run may move above it."""
    if op.name in ("memref.load", "memref.store", "memref.dealloc"):
        return False
    members = set(run)
    owners = [defining_op(operand) for operand in op.operands]
    return all(owner is None or owner not in members for owner in owners)


def _wrap(run: list[ir.Operation]) -> None:
    for op in run:
        for result in op.results:
            outside = [use for use in result.uses if not _is_inside(use.owner.operation, run)]
            if outside:
                _spill(result, op, outside, run)
    last = run[-1]
    with ir.InsertionPoint(last), last.location:
        region = ir.Operation.create("scf.execute_region", regions=1)
    block = region.regions[0].blocks.append()
    with ir.InsertionPoint(block), region.location:
        terminator = ir.Operation.create("scf.yield")
    for op in [*run]:
        op.move_before(terminator)


def _is_inside(user: ir.Operation, run: list[ir.Operation]) -> bool:
    block = run[0].block
    while user.block != block:
        parent = user.parent
        if parent is None:
            return False
        user = parent.operation
    return user in run


def _spill(value: ir.Value, op: ir.Operation, uses: list[ir.OpOperand], run: list[ir.Operation]) -> None:
    """Stores the scalar to a one-element buffer inside the run and loads it again before each outside user."""
    with ir.InsertionPoint(run[0]), op.location:
        memref = ir.MemRefType.get([], value.type)
        segments = ir.DenseI32ArrayAttr.get([0, 0])
        buffer = ir.Operation.create("memref.alloc", results=[memref], attributes={"operandSegmentSizes": segments})
    users = [(use.owner.operation, use.operand_number) for use in uses]
    for user, position in users:
        top = user
        while top.block != run[0].block:
            top = top.parent.operation
        with ir.InsertionPoint(top), op.location:
            load = ir.Operation.create("memref.load", results=[value.type], operands=[buffer.result])
            load.attributes[SPILL] = ir.UnitAttr.get()
        user.operands[position] = load.result
    with ir.InsertionPoint(op), op.location:
        store = ir.Operation.create("memref.store", operands=[value, buffer.result])
    store.move_after(op)
    run.insert(run.index(op) + 1, store)


def residue_operations(function: ir.OpView) -> list[ir.Operation]:
    return walk(function.operation, "scf.execute_region")
