"""What is left at function level besides parallel loops becomes nests too, so that nothing runs uncounted.

Views, allocations and all arithmetic that sizes, offsets and loop bounds depend on are the program's own bookkeeping
and stay; so do the stores to shape tensors, which hold nothing else. Everything else (sequential loops, scalar loads,
arithmetic and stores) is gathered into runs, each wrapped in `scf.execute_region`. A scalar that leaves its run goes
through a one-element buffer.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.lowering.passes import entry_block, walk
from torch_pim.compiler_hook.lowering.views import VIEWS, defining_op, root_buffer

SPILL = "pim.spill"
"""Attribute on loads of spilled scalars: outlining moves them into the nest that uses them."""

_PROGRAM = (
    *VIEWS, "memref.alloc", "memref.alloca", "memref.dealloc", "memref.get_global", "memref.dim", "arith.constant",
    "func.return", "return", "ub.poison", "scf.parallel",
)  # fmt: skip


def is_program_op(op: ir.Operation, needed: set[ir.Operation]) -> bool:
    """True for operations that the program interpreter carries out itself."""
    return op.name in _PROGRAM or SPILL in op.attributes or op in needed


def bookkeeping(function: ir.OpView) -> set[ir.Operation]:
    """Scalar operations on which views, allocation sizes or loop bounds depend, with the shape tensors they go through.

    Raises LoweringError where one of them depends on computed data. An assertion that does is residue.
    """
    collector = _Bookkeeping(function)
    needed: set[ir.Operation] = set()
    for view in entry_block(function).operations:
        op = view.operation
        if op.name in ("scf.parallel", "memref.alloc", *VIEWS):
            needed |= collector.behind(op)
        elif op.name == "cf.assert":
            try:
                needed |= {op, *collector.behind(op)}
            except LoweringError:
                continue
    return needed


class _Bookkeeping:
    def __init__(self, function: ir.OpView) -> None:
        block = entry_block(function)
        self.stores: dict[ir.Value, list[ir.Operation]] = {}
        self.data: set[ir.Value] = set(block.arguments)
        """Buffers whose contents are not known before the program runs."""
        for op in walk(function.operation, "memref.load", "memref.store"):
            root = root_buffer(op.operands[1 if op.name == "memref.store" else 0])
            if op.block != block:
                self.data.add(root)
            elif op.name == "memref.store":
                self.stores.setdefault(root, []).append(op)

    def behind(self, user: ir.Operation) -> set[ir.Operation]:
        """All operations that the scalar operands of `user`, or the shape tensor it reads, are computed by."""
        needed: set[ir.Operation] = set()
        pending = self._inputs(user)
        while pending:
            op = pending.pop()
            if op in needed or op.name in _PROGRAM:
                continue
            if op.regions:
                raise LoweringError(f"an operand of {user.name} depends on the values of a tensor (through {op.name})")
            needed.add(op)
            pending += self._inputs(op)
        return needed

    def _inputs(self, op: ir.Operation) -> list[ir.Operation]:
        found = []
        for position, operand in enumerate(op.operands):
            if not isinstance(operand.type, ir.MemRefType):
                found.append(defining_op(operand))
            elif op.name == "memref.load" or (op.name == "memref.reshape" and position == 1):
                root = root_buffer(operand)
                if root in self.data:
                    raise LoweringError("a size, a bound or the offset of a view depends on the values of a tensor")
                found += self.stores.get(root, [])
        return [operation for operation in found if operation is not None]


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
    """Bookkeeping shares no memory with a run: it may move above it unless it uses a value of the run."""
    members = set(run)
    return op.name != "memref.dealloc" and all(defining_op(operand) not in members for operand in op.operands)


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
    if isinstance(value.type, ir.MemRefType):
        raise LoweringError(f"{op.name} at function level has a tensor as its result, which is not supported")
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
