"""Moves the parallel loop over neighbouring elements inside the sequential loops, where that makes accesses contiguous.

`for j { c[j] = 0; for k { c[j] += a[k] * b[k, j] } }` walks b in large steps. Iterations of a parallel loop are
independent, so it may be distributed over the parts of its body and exchanged with the loops in them:
`for j { c[j] = 0 }; for k { for j { c[j] += a[k] * b[k, j] } }`, in blocks of j so that c stays in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.element_strides import element_stride
from torch_pim.compiler_hook.codegen.memory_effects import element_access
from torch_pim.compiler_hook.codegen.rewriting import IndexBuilder, constant_trips, end_block, is_inside, new_loop
from torch_pim.compiler_hook.lowering.passes import walk

BLOCK = 512
"""Iterations of the moved loop at a time: 2 KiB of f32 results."""
SHORT_TRIPS = 16
"""A loop of fewer iterations does not fill vectors."""
UNROLL = 4
"""Iterations of the innermost sequential loop per load and store of a result."""

_PURE = ("arith.", "math.")


@dataclass(slots=True)
class _Part:
    """Straight-line code, or the innermost body of the perfectly nested `loops` that the parallel loop moves into."""

    operations: list[ir.Operation] = field(default_factory=list)
    loops: list[ir.Operation] = field(default_factory=list)


def make_accesses_contiguous(loop: ir.Operation, trips: int | None) -> None:
    """Rewrites the innermost loop of a parallel range in place, or leaves it as it is if nothing is gained.

    `trips` is the number of iterations of a whole row, None if it is not constant.
    """
    if trips is not None and trips < SHORT_TRIPS:
        return
    parts = _parts(loop)
    if not any(part.loops for part in parts) or not all(_self_contained(part, loop) for part in parts):
        return
    location = loop.location
    first, last, one = list(loop.operands)[:3]
    blocks: ir.Block | None = None
    point = ir.InsertionPoint(loop)
    if trips is None or trips > BLOCK:
        outside = IndexBuilder(point, location)
        _, blocks = new_loop(point, location, first, last, outside.constant(BLOCK))
        point = ir.InsertionPoint(blocks)
        inside = IndexBuilder(point, location)
        last = inside.minimum(inside.add(blocks.arguments[0], inside.constant(BLOCK)), last)
        first = blocks.arguments[0]
    for part in parts:
        _emit(part, loop, point, (first, last, one))
    if blocks is not None:
        end_block(blocks, location)
    loop.erase()


def _parts(loop: ir.Operation) -> list[_Part]:
    """The body in program order; pure operations are left out and repeated where they are needed."""
    parts: list[_Part] = []
    for operation in _body(loop):
        if operation.name.startswith(_PURE):
            continue
        loops, innermost = _perfect_nest(operation, loop)
        if loops and _gains(loops[-1], innermost, loop):
            parts.append(_Part([op for op in innermost if not op.name.startswith(_PURE)], loops))
        else:
            if not parts or parts[-1].loops:
                parts.append(_Part())
            parts[-1].operations.append(operation)
    return parts


def _perfect_nest(operation: ir.Operation, parallel: ir.Operation) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """Loops from the outside in with only pure operations between them, and the straight-line innermost body."""
    loops: list[ir.Operation] = []
    while operation.name == "scf.for" and not len(operation.results):
        if any(is_inside(bound, parallel) for bound in operation.operands):
            return [], []
        loops.append(operation)
        body = _body(operation)
        rest = [op for op in body if not op.name.startswith(_PURE)]
        if not any(len(op.regions) for op in rest):
            return loops, body
        if len(rest) != 1:
            return [], []
        operation = rest[0]
    return [], []


def _gains(innermost: ir.Operation, body: Sequence[ir.Operation], parallel: ir.Operation) -> bool:
    accesses = [access for op in body if (access := element_access(op)) is not None]
    counter, parallel_counter = _counter(innermost), _counter(parallel)
    across = [element_stride(access, parallel_counter) for access in accesses]
    if not accesses or any(stride not in (0, 1) for stride in across) or 1 not in across:
        return False
    trips = constant_trips(*list(innermost.operands)[:3])
    if trips is not None and trips < SHORT_TRIPS:
        return True
    return any(element_stride(access, counter) not in (0, 1) for access in accesses)


def _self_contained(part: _Part, parallel: ir.Operation) -> bool:
    """Uses only what comes from outside, its own operations, loop counters, and pure functions of these."""
    counters = [_counter(parallel), *(_counter(loop) for loop in part.loops)]

    def available(value: ir.Value) -> bool:
        if value in counters or not is_inside(value, parallel):
            return True
        if any(value.owner == op or is_inside(value, op) for op in part.operations):
            return True
        if isinstance(value.owner, ir.Block) or not value.owner.operation.name.startswith(_PURE):
            return False
        return all(available(operand) for operand in value.owner.operation.operands)

    return all(available(value) for top in part.operations for op in walk(top) for value in op.operands)


def _emit(
    part: _Part, parallel: ir.Operation, point: ir.InsertionPoint, bounds: tuple[ir.Value, ir.Value, ir.Value]
) -> None:
    """Copies the part: its loops, in them the parallel loop, in that its operations."""
    location = parallel.location
    copies: dict[ir.Value, ir.Value] = {}
    opened: list[ir.Block] = []
    for loop in part.loops[:-1]:
        _, block = new_loop(point, location, *list(loop.operands)[:3])
        copies[_counter(loop)] = block.arguments[0]
        opened.append(block)
        point = ir.InsertionPoint(block)
    if part.loops:
        innermost = part.loops[-1]
        lower, upper, step = list(innermost.operands)[:3]
        index = IndexBuilder(point, location)
        several = index.multiply(step, index.constant(UNROLL))
        whole = index.multiply(index.divide(index.trip_count(lower, upper, step), index.constant(UNROLL)), several)
        middle = index.add(lower, whole)
        for first, last, stride, repeats in ((lower, middle, several, UNROLL), (middle, upper, step, 1)):
            _, block = new_loop(point, location, first, last, stride)
            inside = IndexBuilder(ir.InsertionPoint(block), location)
            counters = [block.arguments[0]]
            while len(counters) < repeats:
                counters.append(inside.add(counters[-1], step))
            versions = [{**copies, _counter(innermost): counter} for counter in counters]
            _emit_parallel(part, parallel, ir.InsertionPoint(block), bounds, versions)
            end_block(block, location)
    else:
        _emit_parallel(part, parallel, point, bounds, [copies])
    for block in reversed(opened):
        end_block(block, location)


def _emit_parallel(
    part: _Part,
    parallel: ir.Operation,
    point: ir.InsertionPoint,
    bounds: tuple[ir.Value, ir.Value, ir.Value],
    versions: list[dict[ir.Value, ir.Value]],
) -> None:
    """The parallel loop with one copy of the operations per version, each with its own values of the counters."""
    _, block = new_loop(point, parallel.location, *bounds)
    for copies in versions:
        copies[_counter(parallel)] = block.arguments[0]
        for operation in part.operations:
            _copy(operation, parallel, ir.InsertionPoint(block), copies)
    end_block(block, parallel.location)


def _copy(
    operation: ir.Operation, parallel: ir.Operation, point: ir.InsertionPoint, copies: dict[ir.Value, ir.Value]
) -> None:
    for inner in walk(operation):
        for value in inner.operands:
            if value not in copies and is_inside(value, parallel) and not is_inside(value, operation):
                if value.owner != operation:
                    _copy(value.owner.operation, parallel, point, copies)
    with point:
        copy = operation.clone().operation
    for inner in walk(copy):
        for position, value in enumerate(inner.operands):
            if value in copies:
                inner.operands[position] = copies[value]
    copies.update(zip(operation.results, copy.results, strict=True))


def _counter(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]


def _body(loop: ir.Operation) -> list[ir.Operation]:
    """Operations of a loop without the one that ends it."""
    return [view.operation for view in loop.regions[0].blocks[0].operations][:-1]
