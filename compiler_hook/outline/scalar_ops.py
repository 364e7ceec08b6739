"""Index and scalar arithmetic of the program level, with MLIR semantics."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from torch_pim.compiler_hook.errors import LoweringError

Number = int | float


def _floor_div(a: Number, b: Number) -> Number:
    return int(a) // int(b)


def _trunc_div(a: Number, b: Number) -> Number:
    quotient = abs(int(a)) // abs(int(b))
    return quotient if (int(a) < 0) == (int(b) < 0) else -quotient


def _trunc_rem(a: Number, b: Number) -> Number:
    return int(a) - int(b) * int(_trunc_div(a, b))


def _identity(a: Number) -> Number:
    return a


def _select(condition: Number, a: Number, b: Number) -> Number:
    return a if condition else b


_OPERATIONS: dict[str, Callable[..., Number]] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul,
    "arith.divsi": _trunc_div, "arith.divui": _floor_div, "arith.floordivsi": _floor_div,
    "arith.ceildivsi": lambda a, b: -((-int(a)) // int(b)), "arith.ceildivui": lambda a, b: -((-int(a)) // int(b)),
    "arith.remsi": _trunc_rem, "arith.remui": lambda a, b: int(a) % int(b),
    "arith.minsi": min, "arith.maxsi": max, "arith.minui": min, "arith.maxui": max,
    "arith.andi": operator.and_, "arith.ori": operator.or_, "arith.xori": operator.xor,
    "arith.select": _select, "arith.index_cast": _identity, "arith.index_castui": _identity,
    "arith.extsi": _identity, "arith.extui": _identity, "arith.trunci": _identity,
    "arith.addf": operator.add, "arith.subf": operator.sub, "arith.mulf": operator.mul, "arith.divf": operator.truediv,
    "arith.negf": operator.neg, "arith.sitofp": float, "arith.uitofp": float, "arith.fptosi": math.trunc,
    "arith.extf": _identity, "arith.truncf": _identity,
}  # fmt: skip

# Order of arith.cmpi's predicate attribute.
_COMPARISONS: tuple[Callable[[Number, Number], bool], ...] = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip


def compute(operation: str, operands: Sequence[Number], result_type: str, predicate: int = 0) -> Number:
    """Value of one scalar operation; LoweringError for an operation that has no rule here."""
    if operation == "arith.cmpi":
        return int(_COMPARISONS[predicate](*operands))
    rule = _OPERATIONS.get(operation)
    if rule is None:
        raise LoweringError(f"scalar operation {operation} at function level is not supported")
    value = rule(*operands)
    # i1 is a truth value; wider integers do not overflow in shape arithmetic.
    return int(value) & 1 if result_type == "i1" else value
