"""Distinct elements and lines of address patterns against enumeration."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.features.analysis.windows import NOTHING, Extents, random_draws, touched


def enumerated(steps, element_bytes) -> tuple[int, int]:
    counters = itertools.product(*(range(count) for _, count in steps))
    starts = {sum(stride * i for (stride, _), i in zip(steps, at, strict=True)) for at in counters}
    lines = {byte // 64 for start in starts for byte in (start, start + element_bytes - 1)}
    return len(starts), len(lines)


@pytest.mark.parametrize(
    ("steps", "element_bytes", "elements", "lines"),
    [
        ((), 4, 1, 1),
        (((4, 100),), 4, 100, 7),  # 400 contiguous bytes
        (((512, 10), (4, 128)), 4, 1280, 80),  # ten whole rows
        (((512, 10),), 4, 10, 10),  # a column walk: one line per row
        (((4, 8), (4, 3)), 4, 10, 1),  # a window of 3 slides over 8 places
        (((136, 8), (68, 3), (8, 8), (4, 3)), 4, 17 * 17, 19),  # 3x3 windows at stride 2 cover 17 x 17
        (((0, 5),), 4, 5, 1),
        (((4, 0), (512, 3)), 4, 0, 0),
        (((128, 6), (4, 16)), 4, 96, 6),  # half of each pair of lines
    ],
)
def test_known_patterns(steps, element_bytes, elements, lines):
    steps = [(stride, count) for stride, count in steps if stride]
    elements = elements if steps else 1
    assert touched(steps, element_bytes) == Extents(elements, lines)


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    window=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    element_bytes=st.sampled_from([1, 2, 4, 8]),
)
def test_slices_of_row_major_buffers_count_exactly(shape, window, element_bytes):
    """A window of a contiguous buffer: each axis runs over part of its size."""
    strides = [math.prod(shape[axis + 1 :]) * element_bytes for axis in range(len(shape))]
    part = [min(size, wanted) for size, wanted in zip(shape, window + shape, strict=False)]
    steps = list(zip(strides, part, strict=True))
    assert touched(steps, element_bytes).elements == enumerated(steps, element_bytes)[0]


@given(stride=st.integers(1, 3), outer=st.integers(1, 9), kernel=st.integers(1, 5), row=st.integers(40, 60))
def test_sliding_windows_count_exactly(stride, outer, kernel, row):
    """Two-dimensional windows overlap in both axes and are counted once."""
    steps = [(4 * row * stride, outer), (4 * row, kernel), (4 * stride, outer), (4, kernel)]
    expected, _ = enumerated(steps, 4)
    assert touched(steps, 4).elements == expected


STEPS = st.lists(st.tuples(st.integers(1, 150).map(lambda n: 4 * n), st.integers(1, 6)), max_size=4)


@given(steps=STEPS)
def test_any_pattern_is_bounded_and_never_missed_by_far(steps):
    extents = touched(steps, 4)
    elements, lines = enumerated(steps, 4)
    assert 0.75 * elements <= extents.elements <= math.prod(count for _, count in steps)
    reach = 4 + sum(stride * (count - 1) for stride, count in steps)
    assert 0.5 * lines <= extents.lines <= min(extents.elements, reach // 64 + 1)


@given(steps=STEPS, order=st.randoms())
def test_order_of_loops_does_not_matter(steps, order):
    shuffled = list(steps)
    order.shuffle(shuffled)
    assert touched(shuffled, 4) == touched(steps, 4)


@given(draws=st.integers(1, 10_000), whole=st.integers(1, 1000), part=st.integers(1, 50))
def test_random_draws_touch_between_one_and_all(draws, whole, part):
    found = random_draws(Extents(part, part), draws, Extents(whole, whole)).lines
    assert min(part, whole) * (1 - 1e-12) <= found <= min(whole, part * draws) * (1 + 1e-12)


def test_random_draws_follow_the_coupon_formula():
    # 100 draws of one of 100 lines: 100 (1 - 0.99^100) = 63.4 distinct lines.
    assert random_draws(Extents(1, 1), 100, Extents(100, 100)).lines == pytest.approx(63.3968, abs=1e-4)
    assert random_draws(NOTHING, 5, Extents(10, 10)) == NOTHING
