"""How much a nest does: iterations, accesses, and operations by kind, all per execution of the whole nest."""

from __future__ import annotations

from torch_pim.features.extent import concrete
from torch_pim.features.nest import ELEMENT_BYTES, Access, LoopNest, Operation

FLOAT_TYPES = ("f64", "f32", "f16", "bf16")
ARITHMETIC_KINDS = ("add", "multiply", "divide", "square_root", "transcendental")
OVERHEAD_KINDS = ("address", "branch")


def access_count(nest: LoopNest, access: Access) -> float:
    """Executions of one access; a guarded or branched one counts by its probability."""
    return nest.executions(access.loop) * access.probability


def accesses_of(nest: LoopNest, kind: str) -> float:
    """Executed loads (`load`) or stores (`store`)."""
    return sum(access_count(nest, a) for a in nest.accesses if a.kind == kind)


def accessed_bytes(nest: LoopNest) -> float:
    """Bytes that all loads and stores move between registers and caches, every repetition counted."""
    return sum(access_count(nest, a) * ELEMENT_BYTES[a.element_type] for a in nest.accesses)


def operation_count(nest: LoopNest, operation: Operation) -> float:
    return nest.executions(operation.loop) * operation.count


def operations_of(nest: LoopNest, kind: str) -> float:
    """Executed operations of one kind, on any element type."""
    return sum(operation_count(nest, o) for o in nest.operations if o.kind == kind)


def flops(nest: LoopNest) -> float:
    """Floating-point additions, multiplications, divisions, roots and transcendental functions, each counted as one."""
    return sum(
        operation_count(nest, o)
        for o in nest.operations
        if o.kind in ARITHMETIC_KINDS and o.element_type in FLOAT_TYPES
    )


def data_operations(nest: LoopNest, *, floating: bool) -> float:
    """Operations on data, address arithmetic and branches aside: those on floating-point types, or all others."""
    return sum(
        operation_count(nest, o)
        for o in nest.operations
        if o.kind not in OVERHEAD_KINDS and (o.element_type in FLOAT_TYPES) == floating
    )


def innermost_loops(nest: LoopNest) -> tuple[int, ...]:
    """Loops that hold no other loop."""
    return tuple(index for index in range(len(nest.loops)) if nest.is_innermost(index))


def iterations(nest: LoopNest) -> int:
    """Iterations of all innermost loops; 1 for a nest without loops."""
    inner = innermost_loops(nest)
    return sum(nest.executions(index) for index in inner) if inner else 1


def hottest_loop(nest: LoopNest) -> int | None:
    """The innermost loop with the most iterations (the first of equals); None without loops."""
    inner = innermost_loops(nest)
    return max(inner, key=lambda index: (nest.executions(index), -index)) if inner else None


def trip(nest: LoopNest, loop: int) -> int:
    return concrete(nest.loops[loop].trip)
