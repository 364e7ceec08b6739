"""Polynomials of symbolic sizes against plain integers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torch_pim.features import extent
from torch_pim.features.extent import Polynomial

NAMES = ("a0.d0", "a0.d1", "a1")


def terms(depth: int = 3):
    """Pairs of an extent and a function that computes its value from bindings."""
    leaves = st.one_of(
        st.integers(-20, 20).map(lambda n: (n, lambda _: n)),
        st.sampled_from(NAMES).map(lambda name: (Polynomial.symbol(name), lambda b: b[name])),
    )
    operations = st.sampled_from([
        (extent.add, lambda x, y: x + y),
        (extent.subtract, lambda x, y: x - y),
        (extent.multiply, lambda x, y: x * y),
    ])  # fmt: skip

    def combine(children):
        return st.tuples(operations, children, children).map(
            lambda t: (t[0][0](t[1][0], t[2][0]), lambda b: t[0][1](t[1][1](b), t[2][1](b)))
        )

    return st.recursive(leaves, combine, max_leaves=2**depth)


BINDINGS = st.fixed_dictionaries({name: st.integers(0, 50) for name in NAMES})


@given(term=terms(), bindings=BINDINGS)
def test_symbolic_arithmetic_is_arithmetic(term, bindings):
    symbolic, value = term
    assert extent.evaluate(symbolic, bindings) == value(bindings)


@given(term=terms(), factor=st.integers(1, 12), bindings=BINDINGS)
def test_exact_division_undoes_multiplication(term, factor, bindings):
    quotient = extent.divide_exactly(extent.multiply(term[0], factor), factor)
    assert quotient is not None
    assert extent.evaluate(quotient, bindings) == term[1](bindings)


def test_division_that_is_not_exact():
    size = Polynomial.symbol("a0.d0")
    assert extent.divide_exactly(extent.add(extent.multiply(size, 4), 2), 4) is None
    assert extent.divide_exactly(7, 2) is None
    assert extent.divide_exactly(size, 0) is None
    assert extent.divide_exactly(8, 2) == 4
