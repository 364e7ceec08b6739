"""Sibling fusion, rule version 1: what belongs to one nest.

Two top-level parallel loops next to each other become one nest when
  1. their leading extents are equal (the shorter loop's whole range is a prefix of the longer one's);
  2. the second uses a buffer that the first stores to, and every such dependence stays within one iteration of the
     common range;
  3. neither is a pure copy, and together they hold at most one contraction;
  4. a contraction keeps its whole parallel range; another loop may give up trailing dimensions (they become inner
     loops) only if at least MIN_PARALLEL iterations remain or the loop has at most SMALL_ITERATIONS in all.
So fill + contraction + epilogue, softmax over any axis, and norms are one nest each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import entry_block, walk
from torch_pim.compiler_hook.lowering.views import constant_index, defining_op, indices_in_root, root_buffer

FUSION_RULE_VERSION = 1
MIN_PARALLEL = 16
SMALL_ITERATIONS = 1 << 16

_MOVABLE = (
    "arith.", "memref.alloc", "memref.expand_shape", "memref.collapse_shape", "memref.cast", "memref.subview",
    "memref.get_global", "memref.dim", "memref.reinterpret_cast",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Access:
    root: ir.Value
    stored: bool
    positions: tuple[int | None, ...] | None
    """For each leading induction variable the root dimension that it alone indexes; None if anything is unknown."""


@dataclass(frozen=True, slots=True)
class _Nest:
    op: ir.Operation
    extents: tuple[int, ...]
    rank: int
    accesses: tuple[_Access, ...]
    copy: bool
    contraction: bool


def fuse_siblings(function: ir.OpView) -> int:
    """Fuses neighbours in the function's entry block in place; returns how many pairs were fused."""
    fused = 0
    adjacent: list[_Nest] = []
    for view in list(entry_block(function).operations):
        op = view.operation
        if op.name != "scf.parallel":
            adjacent = _keep_adjacent(op, adjacent)
            continue
        nest = _analyse(op)
        if nest is None:
            adjacent = []
            continue
        adjacent.append(nest)
        # A fill joins its consumer first; the pair may then join what came before the fill.
        while len(adjacent) > 1 and (rank := _common_rank(adjacent[-2], adjacent[-1])) is not None:
            merged = _analyse(_merge(adjacent[-2], adjacent[-1], rank))
            fused += 1
            adjacent[-2:] = [] if merged is None else [merged]
    return fused


def _keep_adjacent(op: ir.Operation, adjacent: list[_Nest]) -> list[_Nest]:
    """Moves a pure operation above as many nests as it may; returns those that stay neighbours of what follows."""
    for position, nest in enumerate(adjacent):
        if _move_before(op, nest.op):
            return adjacent[position:]
    return []


def _move_before(op: ir.Operation, target: ir.Operation) -> bool:
    """Moves a pure operation above `target` so that neighbours become adjacent; False if it must stay."""
    if not op.name.startswith(_MOVABLE) or op.regions:
        return False
    for operand in op.operands:
        owner = defining_op(operand)
        if owner is not None and owner.block == target.block and not owner.is_before_in_block(target):
            return False
    op.move_before(target)
    return True


def _bounds(op: ir.Operation) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
    rank = len(op.regions[0].blocks[0].arguments)
    operands = list(op.operands)
    return operands[:rank], operands[rank : 2 * rank], operands[2 * rank : 3 * rank]


def _analyse(op: ir.Operation) -> _Nest | None:
    if len(op.results):
        return None
    lower, upper, step = _bounds(op)
    extents = []
    for lo, hi, by in zip(lower, upper, step, strict=True):
        lo_value, hi_value, by_value = constant_index(lo), constant_index(hi), constant_index(by)
        if lo_value != 0 or by_value != 1:
            return None
        # Equal symbolic bounds are the same SSA value after CSE; a negative number stands for its identity.
        extents.append(hi_value if hi_value is not None else -1 - hash(hi))
    variables = list(op.regions[0].blocks[0].arguments)
    accesses: list[_Access] = []
    computes = False
    loads = 0
    for inner in walk(op):
        if inner.name in ("memref.load", "memref.store"):
            stored = inner.name == "memref.store"
            loads += not stored
            operands = list(inner.operands)[1:] if stored else list(inner.operands)
            indices = indices_in_root(operands[0], operands[1:])
            positions = None if indices is None else tuple(_position(v, indices) for v in variables)
            accesses.append(_Access(root_buffer(operands[0]), stored, positions))
        elif inner.name.startswith(("memref.", "func.call", "scf.while", "linalg.")) and inner.name != "memref.dim":
            return None
        elif inner.name.startswith(("arith.", "math.")) and not _is_index_arithmetic(inner):
            computes = True
    return _Nest(
        op,
        tuple(extents),
        len(extents),
        tuple(accesses),
        loads > 0 and not computes,
        _is_contraction(op, len(variables)),
    )


def _position(variable: ir.Value, indices: list[ir.Value | None]) -> int | None:
    found = [i for i, index in enumerate(indices) if index is not None and index == variable]
    return found[0] if len(found) == 1 else None


def _is_index_arithmetic(op: ir.Operation) -> bool:
    if op.name in ("arith.constant", "arith.index_cast"):
        return True
    return bool(len(op.results)) and str(op.results[0].type) == "index"


def _is_contraction(op: ir.Operation, rank: int) -> bool:
    """A sequential loop that multiplies two loaded values, not both of which use the whole parallel range."""
    for loop in walk(op, "scf.for"):
        body = [inner.operation for inner in loop.regions[0].blocks[0].operations]
        for multiply in body:
            if multiply.name not in ("arith.mulf", "arith.muli"):
                continue
            left, right = (_loaded_from(operand) for operand in multiply.operands)
            if rank > 0 and left is not None and right is not None and left != right:
                return True
    return False


def _loaded_from(value: ir.Value) -> ir.Operation | None:
    """The load behind a value, through conversions."""
    op = defining_op(value)
    while op is not None and op.name.startswith(("arith.ext", "arith.trunc", "arith.sitofp", "arith.uitofp")):
        op = defining_op(op.operands[0])
    return op if op is not None and op.name == "memref.load" else None


def _common_rank(first: _Nest, second: _Nest) -> int | None:
    rank = min(first.rank, second.rank)
    if rank == 0 or first.extents[:rank] != second.extents[:rank] or first.copy or second.copy:
        return None
    if first.contraction and second.contraction:
        return None
    for nest in (first, second):
        if nest.rank > rank and (nest.contraction or not _may_give_up_dimensions(nest, rank)):
            return None
    return rank if _dependences_are_private(first, second, rank) else None


def _may_give_up_dimensions(nest: _Nest, rank: int) -> bool:
    if any(extent < 0 for extent in nest.extents):
        return True
    return math.prod(nest.extents[:rank]) >= MIN_PARALLEL or math.prod(nest.extents) <= SMALL_ITERATIONS


def _dependences_are_private(first: _Nest, second: _Nest, rank: int) -> bool:
    flows = False
    for a in first.accesses:
        for b in second.accesses:
            if not (a.stored or b.stored) or a.root != b.root:
                continue
            if a.positions is None or b.positions is None:
                return False
            if None in a.positions[:rank] or a.positions[:rank] != b.positions[:rank]:
                return False
            flows = flows or a.stored
    return flows


def _merge(first: _Nest, second: _Nest, rank: int) -> ir.Operation:
    """Appends the second nest's body to the first's, over the first `rank` dimensions."""
    head = _demote(first.op, rank) if first.rank > rank else first.op
    tail = _demote(second.op, rank) if second.rank > rank else second.op
    target, source = head.regions[0].blocks[0], tail.regions[0].blocks[0]
    for old, new in zip(list(source.arguments), list(target.arguments), strict=True):
        old.replace_all_uses_with(new)
    terminator = list(target.operations)[-1].operation
    for op in list(source.operations)[:-1]:
        op.operation.move_before(terminator)
    tail.erase()
    return head


def _demote(op: ir.Operation, rank: int) -> ir.Operation:
    """Splits `scf.parallel (i, j, ...)` after `rank` dimensions into an outer and an inner parallel loop."""
    lower, upper, step = _bounds(op)
    body = op.regions[0].blocks[0]
    with ir.InsertionPoint(op), op.location:
        outer = parallel_op(lower[:rank], upper[:rank], step[:rank])
    outer_block = outer.regions[0].blocks[0]
    with ir.InsertionPoint(list(outer_block.operations)[0]), op.location:
        inner = parallel_op(lower[rank:], upper[rank:], step[rank:])
    inner_block = inner.regions[0].blocks[0]
    new_variables = list(outer_block.arguments) + list(inner_block.arguments)
    for old, new in zip(list(body.arguments), new_variables, strict=True):
        old.replace_all_uses_with(new)
    terminator = list(inner_block.operations)[0].operation
    for inner_op in list(body.operations)[:-1]:
        inner_op.operation.move_before(terminator)
    op.erase()
    return outer


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
