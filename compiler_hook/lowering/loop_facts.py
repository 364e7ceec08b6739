"""What the sibling fusion rule needs to know of one parallel loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.parallel_loops import bounds
from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.lowering.views import constant_index, defining_op, indices_in_root, root_buffer


@dataclass(frozen=True, slots=True)
class LoopAccess:
    """One load or store."""

    root: ir.Value
    stored: bool
    positions: tuple[int | None, ...] | None
    """For each leading induction variable the root dimension that it alone indexes; None if anything is unknown."""


@dataclass(frozen=True, slots=True)
class ParallelLoop:
    """A top-level parallel loop from zero by one."""

    op: ir.Operation
    extents: tuple[int | ir.Value, ...]
    """Equal symbolic extents are the same value."""
    accesses: tuple[LoopAccess, ...]
    copy: bool
    contraction: bool
    reduction: bool
    """Has sequential loops."""
    inner_iterations: int
    """Iterations of the loops inside, per iteration of the parallel range; symbolic ones count once."""

    @property
    def rank(self) -> int:
        return len(self.extents)

    def reordered(self, order: Sequence[int]) -> ParallelLoop:
        """As if dimension `new` were the present `order[new]`."""
        accesses = [
            replace(a, positions=None if a.positions is None else tuple(a.positions[old] for old in order))
            for a in self.accesses
        ]
        return replace(self, extents=tuple(self.extents[old] for old in order), accesses=tuple(accesses))


def analyse(op: ir.Operation) -> ParallelLoop | None:
    """Facts of a loop; None for one that the rule leaves alone (results, other bounds, operations on whole buffers)."""
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
    accesses: list[LoopAccess] = []
    computes = False
    loads = 0
    for inner in walk(op):
        if inner.name in ("memref.load", "memref.store"):
            stored = inner.name == "memref.store"
            loads += not stored
            operands = list(inner.operands)[1:] if stored else list(inner.operands)
            indices = indices_in_root(operands[0], operands[1:])
            positions = None if indices is None else tuple(_position(v, indices) for v in variables)
            accesses.append(LoopAccess(root_buffer(operands[0]), stored, positions))
        elif inner.name.startswith(("memref.", "func.call", "scf.while", "linalg.")) and inner.name != "memref.dim":
            return None
        elif inner.name.startswith(("arith.", "math.")) and not _is_index_arithmetic(inner):
            computes = True
    return ParallelLoop(
        op=op,
        extents=tuple(extents),
        accesses=tuple(accesses),
        copy=loads > 0 and not computes,
        contraction=_is_contraction(op),
        reduction=bool(walk(op, "scf.for")),
        inner_iterations=_inner_iterations(op),
    )


def _inner_iterations(op: ir.Operation) -> int:
    return (
        sum(
            math.prod(_trips(loop)) * _inner_iterations(loop)
            for view in op.regions[0].blocks[0].operations
            if (loop := view.operation).name in ("scf.for", "scf.parallel")
        )
        or 1
    )


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
