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
from collections.abc import Iterator

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.loop_facts import ParallelLoop, analyse
from torch_pim.compiler_hook.lowering.parallel_loops import append_body, split_parallel
from torch_pim.compiler_hook.lowering.passes import entry_block
from torch_pim.compiler_hook.lowering.views import defining_op

FUSION_RULE_VERSION = 1
MIN_PARALLEL = 16
SMALL_ITERATIONS = 1 << 16

_MOVABLE = (
    "arith.", "memref.alloc", "memref.expand_shape", "memref.collapse_shape", "memref.cast", "memref.subview",
    "memref.get_global", "memref.dim", "memref.reinterpret_cast",
)  # fmt: skip


def fuse_siblings(function: ir.OpView) -> int:
    """Fuses neighbours in the function's entry block in place; returns how many pairs were fused."""
    fused = 0
    adjacent: list[ParallelLoop] = []
    for view in list(entry_block(function).operations):
        op = view.operation
        if op.name != "scf.parallel":
            adjacent = _keep_adjacent(op, adjacent)
            continue
        nest = analyse(op)
        if nest is None:
            adjacent = []
            continue
        adjacent.append(nest)
        # A fill joins its consumer first; the pair may then join what came before the fill.
        while len(adjacent) > 1 and (head := _fused(adjacent[-2], adjacent[-1])) is not None:
            fused += 1
            merged = analyse(head)
            adjacent[-2:] = [] if merged is None else [merged]
    return fused


def _keep_adjacent(op: ir.Operation, adjacent: list[ParallelLoop]) -> list[ParallelLoop]:
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


def _fused(first: ParallelLoop, second: ParallelLoop) -> ir.Operation | None:
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


def _orders(narrow: ParallelLoop, wide: ParallelLoop) -> Iterator[tuple[int, ...]]:
    """Orders of the wide nest's dimensions under which its leading ones may be those of the narrow nest."""
    same = tuple(range(wide.rank))
    yield same
    matched = _matching_order(narrow, wide) if narrow.reduction and narrow.rank < wide.rank else None
    if matched is not None and matched != same:
        yield matched


def _matching_order(narrow: ParallelLoop, wide: ParallelLoop) -> tuple[int, ...] | None:
    """Puts those dimensions first that index a common buffer like the narrow nest's dimensions do."""
    for a in narrow.accesses:
        for b in wide.accesses:
            if a.root == b.root and a.positions is not None and b.positions is not None and None not in a.positions:
                if not set(a.positions) <= set(b.positions):
                    return None
                leading = [b.positions.index(position) for position in a.positions]
                return (*leading, *(d for d in range(wide.rank) if d not in leading))
    return None


def _may_fuse(first: ParallelLoop, second: ParallelLoop) -> bool:
    rank = min(first.rank, second.rank)
    if first.extents[:rank] != second.extents[:rank]:
        return False
    wider = [nest for nest in (first, second) if nest.rank > rank]
    if any(nest.contraction or not _may_give_up_dimensions(nest, rank) for nest in wider):
        return False
    return _dependences_are_private(first, second, rank)


def _may_give_up_dimensions(nest: ParallelLoop, rank: int) -> bool:
    sizes = [extent for extent in nest.extents if isinstance(extent, int)]
    if len(sizes) < nest.rank:
        return True
    return math.prod(sizes[:rank]) >= MIN_PARALLEL or math.prod(sizes) * nest.inner_iterations <= SMALL_ITERATIONS


def _dependences_are_private(first: ParallelLoop, second: ParallelLoop, rank: int) -> bool:
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
