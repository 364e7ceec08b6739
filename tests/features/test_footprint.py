"""Footprints of whole nests against the walk over every access."""

from __future__ import annotations

import pytest

from torch_pim.features.analysis.footprint import buffer_extents, nest_footprint
from torch_pim.features.analysis.windows import Extents

AFFINE = [
    "convolution",
    "cumulative_sum",
    "fill",
    "gemv_f16",
    "iota",
    "memref_copy",
    "nested_parallel",
    "rotary",
    "sibling_trees",
    "softmax",
    "transpose",
    "views",
]


@pytest.mark.parametrize("name", [name for name in AFFINE if name not in ("gemv_f16", "convolution", "softmax")])
def test_touched_bytes_and_lines_equal_enumeration(nest_of, distinct_of, name):
    footprint = nest_footprint(nest_of(name))
    touched, lines = distinct_of(nest_of(name))
    assert footprint.touched_bytes == touched
    assert footprint.lines == pytest.approx(lines, abs=1)  # buffers start on a line, but views may not


def test_known_footprints(nest_of):
    matmul = nest_footprint(nest_of("matmul"))
    assert matmul.touched_bytes == 4 * (256 * 512 + 512 * 128 + 256 * 128)
    assert matmul.stored_bytes == 4 * 256 * 128
    assert (matmul.lines, matmul.stored_lines) == (matmul.touched_bytes / 64, matmul.stored_bytes / 64)
    assert matmul.line_utilisation == 1.0
    assert matmul.largest_buffer_bytes == 4 * 256 * 512
    convolution = nest_footprint(nest_of("convolution"))
    assert convolution.touched_bytes == 4 * (4 * 8 * 17 * 17 + 16 * 8 * 9 + 4 * 16 * 64)
    softmax = nest_footprint(nest_of("softmax"))
    assert softmax.touched_bytes == 4 * (2 * 128 * 1000 + 2 * 128)


def test_strided_window_uses_part_of_its_lines(nest_of):
    footprint = nest_footprint(nest_of("strided_parameters").at({"a1.s0": 64}))
    assert (footprint.touched_bytes, footprint.lines) == (2 * 16 * 8 * 4, 32)
    assert footprint.line_utilisation == 0.5


def test_partial_loops(nest_of):
    nest = nest_of("matmul")
    inner = buffer_extents(nest, nest.accesses, frozenset({2}))
    assert inner == {0: Extents(512, 32), 1: Extents(512, 512), 2: Extents(1, 1)}
    middle = buffer_extents(nest, nest.accesses, frozenset({1, 2}))
    assert middle == {0: Extents(512, 32), 1: Extents(512 * 128, 4096), 2: Extents(128, 8)}
    assert buffer_extents(nest, nest.accesses, frozenset())[1] == Extents(1, 1)


def test_gather_draws_whole_rows(nest_of):
    table = buffer_extents(nest_of("gather"), nest_of("gather").accesses, frozenset({0, 1}))[1]
    # 32 draws from 5000 rows of 256 elements: nearly all distinct.
    assert table.elements == pytest.approx(5000 * 256 * (1 - (1 - 1 / 5000) ** 32))
    one_row = buffer_extents(nest_of("gather"), nest_of("gather").accesses, frozenset({1}))[1]
    assert one_row.elements == pytest.approx(256)


def test_address_that_is_not_linear_stays_within_its_buffer(nest_of):
    footprint = nest_footprint(nest_of("upsample"))
    assert footprint.touched_bytes == 4 * (64 + 128)


def test_two_sides_of_a_branch_add_up(nest_of):
    extents = buffer_extents(nest_of("branches"), nest_of("branches").accesses, frozenset({0}))
    assert [extents[b].elements for b in range(5)] == [50, 50, 100, 100, 100]
