"""What is left at function level besides parallel loops becomes nests too, so that nothing runs uncounted.

Views, allocations and all arithmetic on sizes are the program's own bookkeeping and stay; so do shape tensors, which
hold nothing else. Everything else (sequential loops, loads of data, arithmetic on it, stores) is gathered into runs,
each wrapped in `scf.execute_region`. A scalar that leaves its run goes through a one-element buffer.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.lowering.passes import entry_block, walk
from torch_pim.compiler_hook.lowering.views import VIEWS, defining_op, root_buffer
from torch_pim.compiler_hook.outline.scalar_ops import SUPPORTED

SPILL = "pim.spill"
"""Attribute on loads of spilled scalars: outlining moves them into the nest that uses them."""

_PROGRAM = (
    *VIEWS, "memref.alloc", "memref.alloca", "memref.dealloc", "memref.get_global", "memref.dim", "arith.constant",
    "func.return", "return", "ub.poison", "scf.parallel",
)  # fmt: skip
_DATA = "a size, a bound or the offset of a view depends on the values of a tensor"


def is_program_op(op: ir.Operation, needed: set[ir.Operation]) -> bool:
    """True for operations that the program interpreter carries out itself."""
    return op.name in _PROGRAM or SPILL in op.attributes or op in needed


def bookkeeping(function: ir.OpView) -> set[ir.Operation]:
    """Scalar operations, shape tensors and assertions that are known once the argument layouts are.

    Raises LoweringError if a view, an allocation or the range of a nest depends on anything else.
    """
    known = _Known(function)
    needed: set[ir.Operation] = set()
    for view in entry_block(function).operations:
        op = view.operation
        if op.name in ("scf.parallel", "memref.alloc", *VIEWS):
            reason = known.obstacle_of_operands(op)
            if reason is not None:
                raise LoweringError(reason)
        elif op.name in SUPPORTED or op.name in ("memref.load", "memref.store", "cf.assert"):
            if known.obstacle(op) is None:
                needed.add(op)
    return needed


class _Known:
    """Tells what can be computed without running a nest, and why anything else cannot."""

    def __init__(self, function: ir.OpView) -> None:
        block = entry_block(function)
        self._obstacles: dict[ir.Operation, str | None] = {}
        self._stores: dict[ir.Value, list[ir.Operation]] = {}
        self._data: set[ir.Value] = set(block.arguments)
        """Buffers that nests touch or the caller sees."""
        for op in walk(function.operation, "memref.load", "memref.store", "func.return"):
            if op.name == "func.return":
                self._data.update(root_buffer(operand) for operand in op.operands)
                continue
            root = root_buffer(op.operands[1 if op.name == "memref.store" else 0])
            if op.block != block:
                self._data.add(root)
            elif op.name == "memref.store":
                self._stores.setdefault(root, []).append(op)

    def obstacle(self, op: ir.Operation) -> str | None:
        """None if the operation's effect is known from layouts alone, else the reason why not."""
        if op not in self._obstacles:
            # What depends on itself through memory is no shape arithmetic.
            self._obstacles[op] = _DATA
            self._obstacles[op] = self._find_obstacle(op)
        return self._obstacles[op]

    def obstacle_of_operands(self, op: ir.Operation) -> str | None:
        """The same for the scalars that an operation uses and the shape tensor that it reads."""
        for position, operand in enumerate(op.operands):
            source = defining_op(operand)
            if isinstance(operand.type, ir.MemRefType):
                reason = self._obstacle_of_buffer(operand) if op.name == "memref.reshape" and position == 1 else None
            else:
                reason = None if source is None else self.obstacle(source)
            if reason is not None:
                return reason
        return None

    def _find_obstacle(self, op: ir.Operation) -> str | None:
        if op.name in _PROGRAM:
            return None
        if op.name in ("memref.load", "memref.store"):
            return self._obstacle_of_buffer(op.operands[1 if op.name == "memref.store" else 0])
        if op.regions:
            return _DATA
        if op.name not in SUPPORTED and op.name != "cf.assert":
            return f"operation {op.name} at function level is not supported"
        return self.obstacle_of_operands(op)

    def _obstacle_of_buffer(self, buffer: ir.Value) -> str | None:
        """None for a shape tensor: nobody but the function itself stores to it, and only what is known."""
        root = root_buffer(buffer)
        stores = self._stores.get(root, [])
        if root in self._data or not stores:
            return _DATA
        return next((reason for store in stores if (reason := self.obstacle_of_operands(store)) is not None), None)


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
