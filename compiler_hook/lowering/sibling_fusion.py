"""Sibling fusion, rule version 1: what belongs to one nest.

Two top-level parallel loops next to each other become one nest when
  1. one's whole range is part of the other's: its leading dimensions or, beside a reduction, any of its dimensions;
  2. the second uses a buffer that the first stores to, and every such dependence stays within one iteration of the
     common range;
  3. neither is a pure copy, and together they hold at most one contraction;
  4. a contraction keeps its whole parallel range; another loop may give up dimensions (they become inner loops) only
     if at least MIN_PARALLEL iterations remain or the loop has at most SMALL_ITERATIONS in all.
So fill + contraction + epilogue, softmax over any axis, and norms are one nest each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.parallel_loops import append_body, bounds, split_parallel
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
    extents: tuple[int | ir.Value, ...]
    """Equal symbolic extents are the same value."""
    accesses: tuple[_Access, ...]
    copy: bool
    contraction: bool
    reduction: bool
    """Has sequential loops."""
    inner_iterations: int
    """Iterations of the loops inside, per iteration of the parallel range; symbolic ones count once."""

    @property
    def rank(self) -> int:
        return len(self.extents)

    def reordered(self, order: Sequence[int]) -> _Nest:
        """As if dimension `new` were the present `order[new]`."""
        accesses = [
            replace(a, positions=None if a.positions is None else tuple(a.positions[old] for old in order))
            for a in self.accesses
        ]
        return replace(self, extents=tuple(self.extents[old] for old in order), accesses=tuple(accesses))


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
        while len(adjacent) > 1 and (head := _fused(adjacent[-2], adjacent[-1])) is not None:
            fused += 1
            merged = _analyse(head)
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


def _analyse(op: ir.Operation) -> _Nest | None:
    if len(op.results):
        return None
    lower, upper, step = bounds(op)
    extents: list[int | ir.Value] = []
    for lo, hi, by in zip(lower, upper, step, strict=True):
        lo_value, hi_value, by_value = constant_index(lo), constant_index(hi), constant_index(by)
        if lo_value != 0 or by_value != 1:
            return None
        extents.append(hi if hi_value is None else hi_value)
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
        op=op,
        extents=tuple(extents),
        accesses=tuple(accesses),
        copy=loads > 0 and not computes,
        contraction=_is_contraction(op),
        reduction=bool(walk(op, "scf.for")),
        inner_iterations=_inner_iterations(op),
    )


def _inner_iterations(op: ir.Operation) -> int:
    return sum(
        math.prod(_trips(loop)) * _inner_iterations(loop)
        for view in op.regions[0].blocks[0].operations
        if (loop := view.operation).name in ("scf.for", "scf.parallel")
    ) or 1


def _trips(loop: ir.Operation) -> list[int]:
    """Trip counts of a loop with constant bounds from zero by one; 1 for any other bound."""
    rank = len(loop.operands) // 3 if loop.name == "scf.parallel" else 1
    upper = list(loop.operands)[rank : 2 * rank]
    return [max(1, constant_index(value) or 1) for value in upper]


def _position(variable: ir.Value, indices: list[ir.Value | None]) -> int | None:
    found = [i for i, index in enumerate(indices) if index is not None and index == variable]
    return found[0] if len(found) == 1 else None


def _is_index_arithmetic(op: ir.Operation) -> bool:
    if op.name in ("arith.constant", "arith.index_cast"):
        return True
    return bool(len(op.results)) and str(op.results[0].type) == "index"


def _is_contraction(op: ir.Operation) -> bool:
    """A sequential loop that multiplies two different loaded values."""
    for loop in walk(op, "scf.for"):
        for inner in loop.regions[0].blocks[0].operations:
            if inner.operation.name in ("arith.mulf", "arith.muli"):
                left, right = (_loaded_from(operand) for operand in inner.operation.operands)
                if left is not None and right is not None and left != right:
                    return True
    return False


def _loaded_from(value: ir.Value) -> ir.Operation | None:
    """The load behind a value, through conversions."""
    op = defining_op(value)
    while op is not None and op.name.startswith(("arith.ext", "arith.trunc", "arith.sitofp", "arith.uitofp")):
        op = defining_op(op.operands[0])
    return op if op is not None and op.name == "memref.load" else None


def _fused(first: _Nest, second: _Nest) -> ir.Operation | None:
    """The one loop that two neighbours become, or None if the rule keeps them apart."""
    if first.copy or second.copy or (first.contraction and second.contraction):
        return None
    narrow, wide = (first, second) if first.rank <= second.rank else (second, first)
    for order in _orders(narrow, wide):
        if _may_fuse(first, second.reordered(order)) if wide is second else _may_fuse(first.reordered(order), second):
            outer = split_parallel(wide.op, order, narrow.rank)
            head, tail = (narrow.op, outer) if wide is second else (outer, narrow.op)
            append_body(head, tail)
            return head
    return None


def _orders(narrow: _Nest, wide: _Nest) -> Iterator[tuple[int, ...]]:
    """Orders of the wide nest's dimensions under which its leading ones may be those of the narrow nest."""
    same = tuple(range(wide.rank))
    yield same
    matched = _matching_order(narrow, wide) if narrow.reduction and narrow.rank < wide.rank else None
    if matched is not None and matched != same:
        yield matched


def _matching_order(narrow: _Nest, wide: _Nest) -> tuple[int, ...] | None:
    """Puts those dimensions first that index a common buffer like the narrow nest's dimensions do."""
    for a in narrow.accesses:
        for b in wide.accesses:
            if a.root == b.root and a.positions is not None and b.positions is not None and None not in a.positions:
                if not set(a.positions) <= set(b.positions):
                    return None
                leading = [b.positions.index(position) for position in a.positions]
                return (*leading, *(d for d in range(wide.rank) if d not in leading))
    return None


def _may_fuse(first: _Nest, second: _Nest) -> bool:
    rank = min(first.rank, second.rank)
    if first.extents[:rank] != second.extents[:rank]:
        return False
    wider = [nest for nest in (first, second) if nest.rank > rank]
    if any(nest.contraction or not _may_give_up_dimensions(nest, rank) for nest in wider):
        return False
    return _dependences_are_private(first, second, rank)


def _may_give_up_dimensions(nest: _Nest, rank: int) -> bool:
    sizes = [extent for extent in nest.extents if isinstance(extent, int)]
    if len(sizes) < nest.rank:
        return True
    return math.prod(sizes[:rank]) >= MIN_PARALLEL or math.prod(sizes) * nest.inner_iterations <= SMALL_ITERATIONS


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
