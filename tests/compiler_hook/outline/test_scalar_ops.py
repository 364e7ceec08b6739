"""Program-level arithmetic against numpy, with MLIR's widths and rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.compiler_hook.errors import ShapeError
from torch_pim.compiler_hook.outline.scalar_ops import SUPPORTED, compute

SIGNED = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64}
UNSIGNED = {"i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64, "index": np.uint64}
Rule = Callable[[Any, Any], Any]

BOTH: dict[str, Rule] = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.minsi": np.minimum, "arith.maxsi": np.maximum,
}  # fmt: skip
DIVISIONS: dict[str, Rule] = {"arith.floordivsi": np.floor_divide, "arith.divsi": lambda a, b: np.fix(a / b)}
UNSIGNED_RULES: dict[str, Rule] = {
    "arith.divui": np.floor_divide, "arith.remui": np.remainder, "arith.minui": np.minimum, "arith.maxui": np.maximum,
}  # fmt: skip


@st.composite
def typed_pairs(draw: st.DrawFn) -> tuple[str, int, int]:
    name = draw(st.sampled_from(sorted(SIGNED)))
    limits = np.iinfo(SIGNED[name])
    number = st.integers(int(limits.min), int(limits.max)) | st.integers(-4, 4)
    return name, draw(number), draw(number)


@given(typed_pairs(), st.sampled_from(sorted(BOTH)))
def test_integers_wrap_like_numpy(pair: tuple[str, int, int], operation: str) -> None:
    name, a, b = pair
    with np.errstate(over="ignore"):
        expected = int(BOTH[operation](SIGNED[name](a), SIGNED[name](b)))
    assert compute(operation, [a, b], name, name) == expected


@given(typed_pairs(), st.sampled_from(sorted(UNSIGNED_RULES)))
def test_unsigned_operations_read_the_same_bits(pair: tuple[str, int, int], operation: str) -> None:
    name, a, b = pair
    if b == 0:
        b = 3
    left, right = (np.asarray(value, dtype=SIGNED[name]).view(UNSIGNED[name]) for value in (a, b))
    expected = int(np.asarray(UNSIGNED_RULES[operation](left, right)).view(SIGNED[name]))
    assert compute(operation, [a, b], name, name) == expected


@given(st.integers(-1000, 1000), st.integers(-30, 30).filter(bool))
def test_signed_divisions(a: int, b: int) -> None:
    for operation, rule in DIVISIONS.items():
        assert compute(operation, [a, b], "i64", "i64") == int(rule(a, b))
    assert compute("arith.ceildivsi", [a, b], "i64", "i64") == math.ceil(a / b)
    assert compute("arith.remsi", [a, b], "i64", "i64") == int(math.fmod(a, b))


@given(typed_pairs(), st.integers(0, 9))
def test_comparisons(pair: tuple[str, int, int], predicate: int) -> None:
    name, a, b = pair
    kind = UNSIGNED if predicate >= 6 else SIGNED
    left, right = (np.asarray(value, dtype=SIGNED[name]).view(kind[name]) for value in (a, b))
    rules = (
        np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
        np.less, np.less_equal, np.greater, np.greater_equal,
    )  # fmt: skip
    assert compute("arith.cmpi", [a, b], name, "i1", predicate) == int(rules[predicate](left, right))


@given(typed_pairs(), st.sampled_from(sorted(SIGNED)))
def test_casts_between_widths(pair: tuple[str, int, int], target: str) -> None:
    name, a, _ = pair
    value = np.asarray(a, dtype=SIGNED[name])
    signed = int(value.astype(SIGNED[target]))
    unsigned = int(value.view(UNSIGNED[name]).astype(SIGNED[target]))
    for operation in ("arith.extsi", "arith.trunci", "arith.index_cast"):
        assert compute(operation, [a], name, target) == signed
    for operation in ("arith.extui", "arith.index_castui"):
        assert compute(operation, [a], name, target) == unsigned
    assert compute("arith.sitofp", [a], name, "f32") == float(np.float32(a))
    assert compute("arith.uitofp", [a], name, "f64") == float(value.view(UNSIGNED[name]))


def test_truth_values() -> None:
    assert compute("arith.extui", [1], "i1", "i64") == 1
    assert compute("arith.extsi", [1], "i1", "i64") == -1
    assert compute("arith.addi", [1, 1], "i1", "i1") == 0
    assert compute("arith.select", [1, 5, 6], "i1", "i64") == 5
    assert compute("arith.select", [0, 5, 6], "i1", "i64") == 6


FLOATS = st.floats(allow_nan=False, width=32)


@given(FLOATS, FLOATS)
def test_floats_round_to_their_type(a: float, b: float) -> None:
    rules = {"arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide}
    for operation, rule in rules.items():
        with np.errstate(all="ignore"):
            expected = float(rule(np.float32(a), np.float32(b)))
        np.testing.assert_equal(compute(operation, [a, b], "f32", "f32"), expected)
    with np.errstate(over="ignore"):
        assert compute("arith.truncf", [a], "f32", "f16") == float(np.float16(a))
    assert compute("arith.negf", [a], "f32", "f32") == -a


def test_floats_to_integers_drop_the_fraction() -> None:
    assert compute("arith.fptosi", [2.9], "f32", "i64") == 2
    assert compute("arith.fptosi", [-2.9], "f32", "i64") == -2


@pytest.mark.parametrize(
    ("operation", "operands", "kind"),
    [
        ("arith.divsi", [4, 0], "i64"),
        ("arith.remui", [4, 0], "index"),
        ("arith.fptosi", [math.nan], "f32"),
        ("arith.fptosi", [math.inf], "f32"),
    ],
)
def test_operations_without_a_value(operation: str, operands: list[float], kind: str) -> None:
    with pytest.raises(ShapeError, match=f"{operation} of .* has no value"):
        compute(operation, operands, kind, "i64")


def test_all_supported_operations_are_known_by_their_mlir_names() -> None:
    assert all(operation.startswith("arith.") for operation in SUPPORTED)
    assert {"arith.addi", "arith.cmpi", "arith.select"} <= SUPPORTED
