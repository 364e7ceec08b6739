"""Index and scalar arithmetic of the program level, with MLIR semantics.

An integer is a Python int in the signed range of its type, a truth value (i1) is 0 or 1, a float is a Python float
that its type can hold.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from torch_pim.compiler_hook.errors import ShapeError

Number = int | float

_FLOATS: dict[str, Callable[[Number], Any]] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip


def _trunc_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _trunc_rem(a: int, b: int) -> int:
    return a - b * _trunc_div(a, b)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _select(condition: Number, a: Number, b: Number) -> Number:
    return a if condition else b


def _divide(a: float, b: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(a) / np.float64(b))


def _identity(a: Number) -> Number:
    return a


# Order of arith.cmpi's predicate attribute: equality, then the signed and the unsigned comparisons.
_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip
_FIRST_UNSIGNED = 6

_SIGNED: dict[str, Callable[..., Number]] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul,
    "arith.divsi": _trunc_div, "arith.floordivsi": operator.floordiv, "arith.ceildivsi": _ceil_div,
    "arith.remsi": _trunc_rem, "arith.minsi": min, "arith.maxsi": max,
    "arith.andi": operator.and_, "arith.ori": operator.or_, "arith.xori": operator.xor,
    "arith.index_cast": _identity, "arith.extsi": _identity, "arith.trunci": _identity, "arith.sitofp": float,
}  # fmt: skip
_UNSIGNED: dict[str, Callable[..., Number]] = {
    "arith.divui": operator.floordiv, "arith.ceildivui": _ceil_div, "arith.remui": operator.mod,
    "arith.minui": min, "arith.maxui": max,
    "arith.index_castui": _identity, "arith.extui": _identity, "arith.uitofp": float,
}  # fmt: skip
_AS_IT_IS: dict[str, Callable[..., Number]] = {
    "arith.select": _select,
    "arith.addf": operator.add, "arith.subf": operator.sub, "arith.mulf": operator.mul, "arith.divf": _divide,
    "arith.negf": operator.neg, "arith.fptosi": math.trunc, "arith.extf": _identity, "arith.truncf": _identity,
}  # fmt: skip

_RULES = {**_SIGNED, **_UNSIGNED, **_AS_IT_IS}
SUPPORTED = frozenset({"arith.cmpi", *_RULES})


def compute(
    operation: str, operands: Sequence[Number], operand_type: str, result_type: str, predicate: int = 0
) -> Number:
    """Value of one operation of SUPPORTED; ShapeError where it has none, as for an integer divided by zero."""
    unsigned = operation in _UNSIGNED or (operation == "arith.cmpi" and predicate >= _FIRST_UNSIGNED)
    if unsigned:
        operands = [_unsigned(int(value), operand_type) for value in operands]
    elif operation in _SIGNED or operation == "arith.cmpi":
        operands = [_signed(int(value), operand_type) for value in operands]
    rule: Callable[..., Number] = _COMPARISONS[predicate] if operation == "arith.cmpi" else _RULES[operation]
    try:
        value = rule(*operands)
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise ShapeError(f"{operation} of {', '.join(map(str, operands))} has no value: {error}") from error
    return _as_type(value, result_type)


def _as_type(value: Number, result_type: str) -> Number:
    if result_type in _FLOATS:
        with np.errstate(over="ignore"):
            return float(_FLOATS[result_type](value))
    if result_type == "i1":
        return int(value) & 1
    return _signed(int(value), result_type)


def _bits(integer_type: str) -> int:
    return 64 if integer_type == "index" else int(integer_type.removeprefix("i"))


def _unsigned(value: int, integer_type: str) -> int:
    return value & ((1 << _bits(integer_type)) - 1)


def _signed(value: int, integer_type: str) -> int:
    bits = _bits(integer_type)
    value = _unsigned(value, integer_type)
    return value - (1 << bits) if value >> (bits - 1) else value
