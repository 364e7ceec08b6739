"""Index forms against the integers that they stand for."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from torch_pim.features.extraction.index_form import IndexForm, ceil_divide, floor_divide, remainder
from torch_pim.features.extraction.trip_counts import trip_count


def value(form: IndexForm, counters) -> int:
    return form.constant + sum(c * counters[loop] for loop, c in form.coefficients)


FORMS = st.tuples(
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 6)), max_size=3),
)


@given(form=FORMS, divisor=st.integers(1, 24))
def test_linear_quotients_and_remainders_are_exact(form, divisor):
    constant, steps = form
    trips = [trip for _, trip in steps]
    number = IndexForm(constant, tuple((loop, c) for loop, (c, _) in enumerate(steps)))
    by = IndexForm(divisor)
    results = [
        (floor_divide(number, by, trips), lambda n: n // divisor),
        (remainder(number, by, trips), lambda n: n % divisor),
        (ceil_divide(number, by, trips), lambda n: -(-n // divisor)),
    ]
    for result, exact in results:
        if result.affine and result.exact:
            for counters in itertools.product(*(range(trip) for trip in trips)):
                assert value(result, counters) == exact(value(number, counters))


def test_a_flattened_index_splits_again():
    flat = IndexForm(0, ((0, 64), (1, 8), (2, 1)))  # 64 i + 8 j + k
    trips = [10, 8, 8]
    assert floor_divide(flat, IndexForm(64), trips) == IndexForm(0, ((0, 1),))
    assert remainder(flat, IndexForm(64), trips) == IndexForm(0, ((1, 8), (2, 1)))
    assert not floor_divide(flat, IndexForm(48), trips).affine


@given(lower=st.integers(-20, 20), upper=st.integers(-20, 60), step=st.integers(1, 9))
def test_constant_trip_counts(lower, upper, step):
    found = trip_count(IndexForm(lower), IndexForm(upper), IndexForm(step), [])
    assert found == (len(range(lower, upper, step)), False)


@given(outer=st.integers(1, 20), start=st.integers(1, 20), growth=st.integers(1, 5))
def test_a_growing_loop_takes_its_mean_rounded_up(outer, start, growth):
    total = sum(start + growth * i for i in range(outer))
    found = trip_count(IndexForm(0), IndexForm(start, ((0, growth),)), IndexForm(1), [outer])
    assert found == (-(-total // outer), True)
