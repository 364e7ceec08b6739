"""Which buffers a nest takes addresses from, and what values in them keep those addresses in range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.memory_effects import ElementAccess, element_access
from torch_pim.compiler_hook.codegen.pipelines import new_context, parse_module
from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.lowering.views import constant_index, defining_op
from torch_pim.compiler_hook.outline.nest_function import ConcreteParameter, NestFunction

_ONE_OF_OPERANDS = frozenset(
    {
        "arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci",
        "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui",
    }
)  # fmt: skip
"""Operations whose result is, as a number, one of their operands."""
_LESS, _AT_LEAST = 2, 5
"""Predicates slt and sge of arith.cmpi."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """Values in parameter `holder` must stay below the size of one dimension of `addressed`, or below `size`."""

    holder: int
    size: int = 1
    addressed: int | None = None
    dimension: int = 0


def index_bounds(function: NestFunction, parameters: Sequence[ConcreteParameter]) -> tuple[int | None, ...]:
    """Per parameter the exclusive upper bound of values that keep addresses in range; None if it holds no addresses.

    The bound is the smallest size of the dimensions that its values index. It is 1 (only zeros are safe) where they
    are computed with before they address something, or where the addressed size is not known.
    """
    bounds: list[int | None] = [None] * len(parameters)
    for limit in _limits(function.canonical):
        size = limit.size if limit.addressed is None else parameters[limit.addressed].shape[limit.dimension]
        known = bounds[limit.holder]
        bounds[limit.holder] = max(1, size if known is None else min(known, size))
    return tuple(bounds)


@lru_cache(maxsize=1024)
def _limits(canonical: str) -> tuple[_Limit, ...]:
    module = parse_module(canonical, new_context())
    function = module.body.operations[0].operation
    accesses = [access for op in walk(function) if (access := element_access(op)) is not None]
    found: dict[_Limit, None] = {}
    for access in accesses:
        for dimension, index in enumerate(access.indices):
            for holder, computed in _sources(index):
                limit = _Limit(holder) if computed else _limit_of(access, dimension, holder)
                found.setdefault(limit)
    # Addresses may pass through a buffer of the nest itself: what is stored there is limited as well.
    pending = list(found)
    while pending:
        limit = pending.pop()
        for access in accesses:
            if access.stored is None or _position(access.root) != limit.holder:
                continue
            for holder, computed in _sources(access.stored):
                passed = _Limit(holder) if computed else _Limit(holder, limit.size, limit.addressed, limit.dimension)
                if passed not in found:
                    found[passed] = None
                    pending.append(passed)
    return tuple(found)


def _limit_of(access: ElementAccess, dimension: int, holder: int) -> _Limit:
    memref = ir.MemRefType(access.memref.type)
    if not memref.is_dynamic_dim(dimension):
        return _Limit(holder, memref.shape[dimension])
    position = _position(access.memref)
    return _Limit(holder) if position is None else _Limit(holder, addressed=position, dimension=dimension)


def _position(value: ir.Value) -> int | None:
    """Index of a parameter of the function; None for other values."""
    if not isinstance(value.owner, ir.Block) or value.owner.owner.operation.name != "func.func":
        return None
    return int(ir.BlockArgument(value).arg_number)


def _sources(value: ir.Value) -> Iterator[tuple[int, bool]]:
    """(parameter whose loaded elements reach the value, whether they are computed with on the way)."""
    seen: set[tuple[ir.Value, bool]] = set()
    pending = [(value, False)]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        value, computed = current
        owner = value.owner
        if isinstance(owner, ir.Block):
            pending += [(origin, computed) for origin in _loop_values(value, owner)]
            continue
        operation = owner.operation
        access = element_access(operation)
        if access is not None:
            position = _position(access.root)
            if position is not None:
                yield position, computed
        elif operation.name == "arith.select":
            pending += [(branch, computed) for branch in _branches(operation)]
        elif operation.name in ("scf.if", "scf.for"):
            pending += [(origin, computed) for origin in _region_results(operation, value)]
        else:
            changed = computed or operation.name not in _ONE_OF_OPERANDS
            pending += [(operand, changed) for operand in operation.operands]


def _branches(select: ir.Operation) -> list[ir.Value]:
    """What a select yields for values that are not negative: `x < 0 ? x + size : x` yields x."""
    condition, if_true, if_false = select.operands
    compare = defining_op(condition)
    if compare is not None and compare.name == "arith.cmpi" and constant_index(compare.operands[1]) == 0:
        predicate = ir.IntegerAttr(compare.attributes["predicate"]).value
        if predicate == _LESS and compare.operands[0] == if_false:
            return [if_false]
        if predicate == _AT_LEAST and compare.operands[0] == if_true:
            return [if_true]
    return [if_true, if_false]


def _loop_values(argument: ir.Value, block: ir.Block) -> list[ir.Value]:
    """Where a block argument's value comes from: bounds of its loop, or what the loop carries."""
    loop = block.owner.operation
    position = ir.BlockArgument(argument).arg_number
    if loop.name == "scf.parallel":
        rank = len(block.arguments)
        return [loop.operands[position], loop.operands[rank + position]]
    if loop.name == "scf.for":
        if position == 0:
            return list(loop.operands)[:2]
        return [loop.operands[2 + position], _terminator(block).operands[position - 1]]
    return []


def _region_results(operation: ir.Operation, value: ir.Value) -> list[ir.Value]:
    position = next(i for i, result in enumerate(operation.results) if result == value)
    ends = [_terminator(block).operands[position] for region in operation.regions for block in region.blocks]
    return [*ends, operation.operands[3 + position]] if operation.name == "scf.for" else ends


def _terminator(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation
