"""The level-fit model against a fully associative LRU cache, and its smoothness."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.features.analysis.misses import DEFAULT_FIT, SoftCapacity, fitted_misses
from torch_pim.features.nest import Access, Buffer, Loop, LoopNest

KIB = 1024


def lru_misses(trace, capacity_bytes: int) -> int:
    lines: OrderedDict[int, None] = OrderedDict()
    missed = 0
    for _, address in trace:
        line = address // 64
        if line in lines:
            lines.move_to_end(line)
            continue
        missed += 1
        lines[line] = None
        if len(lines) > capacity_bytes // 64:
            lines.popitem(last=False)
    return missed


def product(rows: int, columns: int, depth: int) -> LoopNest:
    """Naive c += a b."""
    trips = (rows, columns, depth)
    kinds = ("parallel", "parallel", "sequential")
    a = Access(0, "load", "f32", 2, ((0, 4 * depth), (2, 4)))
    b = Access(1, "load", "f32", 2, ((1, 4), (2, 4 * columns)))
    c = Access(2, "load", "f32", 2, ((0, 4 * columns), (1, 4)))
    shapes = ((rows, depth), (depth, columns), (rows, columns))
    return LoopNest(
        name="product",
        loops=tuple(Loop(kind, trip, i - 1) for i, (kind, trip) in enumerate(zip(kinds, trips, strict=True))),
        parallel_rank=2,
        accesses=(a, b, c, replace(c, kind="store")),
        operations=(),
        buffers=tuple(Buffer("f32", s, True, i == 2, 4 * s[0] * s[1]) for i, s in enumerate(shapes)),
        kind="compute",
        partitionable=True,
        code_hash="",
    )


@pytest.mark.parametrize(
    ("sizes", "capacity"),
    [
        ((12, 40, 48), 1 * KIB),  # one column of b takes 3 KiB, all of b 7.5 KiB
        ((12, 40, 48), 64 * KIB),
        ((32, 32, 32), 1 * KIB),  # 2 KiB and 4 KiB
        ((32, 32, 32), 8 * KIB),
        ((8, 64, 96), 3 * KIB),  # 6 KiB and 24 KiB
        ((8, 64, 96), 12 * KIB),
        ((8, 64, 96), 64 * KIB),
    ],
)
def test_matrix_product_follows_lru_away_from_the_edges(trace_of, sizes, capacity):
    """No working set is within a factor of 1.8 of the capacity."""
    nest = product(*sizes)
    measured = lru_misses(trace_of(nest), capacity)
    assert fitted_misses(nest, capacity).lines == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize("name", ["cumulative_sum", "rotary", "sibling_trees", "transpose", "views"])
def test_cold_misses_are_the_distinct_lines(nest_of, distinct_of, name):
    missed = fitted_misses(nest_of(name), 1024 * KIB).lines
    assert missed == pytest.approx(distinct_of(nest_of(name))[1], abs=1)


def test_transpose_in_a_tiny_cache_misses_on_every_store(nest_of, trace_of):
    capacity = 1 * KIB  # 16 lines; a column of the result takes 32
    measured = lru_misses(trace_of(nest_of("transpose")), capacity)
    assert measured == 64 * 32 + 128
    assert fitted_misses(nest_of("transpose"), capacity).lines == pytest.approx(measured, rel=0.1)


def test_softmax_passes_share_a_row_that_fits(nest_of):
    fits, not_at_all = (fitted_misses(nest_of("softmax"), size).lines for size in (64 * KIB, 2 * KIB))
    assert fits == pytest.approx(128 * (63 + 63), rel=0.02)
    assert not_at_all == pytest.approx(128 * (63 * 4), rel=0.06)  # a is read twice, b stored once and read once


@pytest.mark.parametrize("capacity_lines", [20, 80, 128, 300])
def test_second_pass_finds_what_lies_within_reach(trace_of, capacity_lines):
    """A sum over 64 lines, then a scaled copy with weights: 3 x 64 lines. Reuse of x lies 64 to 192 lines apart."""
    length = 64 * 16
    x_again = Access(0, "load", "f32", 2, ((0, 4 * length), (2, 4)))
    nest = LoopNest(
        name="two passes",
        loops=(Loop("parallel", 8, -1), Loop("sequential", length, 0), Loop("sequential", length, 0)),
        parallel_rank=1,
        accesses=(
            Access(0, "load", "f32", 1, ((0, 4 * length), (1, 4))),
            x_again,
            Access(1, "load", "f32", 2, ((2, 4),)),
            replace(x_again, buffer=2, kind="store"),
        ),
        operations=(),
        buffers=tuple(
            Buffer("f32", s, True, False, 4 * length * s[0]) for s in ((8, length), (1, length), (8, length))
        ),
        kind="compute",
        partitionable=True,
        code_hash="",
    )
    capacity = capacity_lines * 64
    measured = lru_misses(trace_of(nest), capacity)
    assert fitted_misses(nest, capacity).lines == pytest.approx(measured, rel=0.12)


@pytest.mark.parametrize("capacity_lines", [16, 128, 256, 400, 1000])
def test_random_draws_hit_what_the_cache_holds(capacity_lines):
    """4000 draws from 512 lines: LRU holds any of them with probability capacity / 512."""
    draws, lines = 4000, 512
    nest = LoopNest(
        name="draws",
        loops=(Loop("sequential", draws, -1),),
        parallel_rank=0,
        accesses=(Access(0, "load", "f32", 0, (), indirect=True, indirect_loops=(0,)),),
        operations=(),
        buffers=(Buffer("f32", (lines * 16,), True, False, lines * 64),),
        kind="compute",
        partitionable=False,
        code_hash="",
    )
    drawn = np.random.default_rng(0).integers(0, lines, draws)
    measured = lru_misses(((None, int(line) * 64) for line in drawn), capacity_lines * 64)
    assert fitted_misses(nest, capacity_lines * 64).lines == pytest.approx(measured, rel=0.1)


def test_short_rows_that_start_anywhere_take_more_lines(trace_of):
    """Rows of 100 bytes, every other one: a row covers 1 + (100 - 4) / 64 lines on average, in any cache."""
    nest = LoopNest(
        name="rows",
        loops=(Loop("parallel", 64, -1), Loop("parallel", 25, 0)),
        parallel_rank=2,
        accesses=(Access(0, "load", "f32", 1, ((0, 200), (1, 4))),),
        operations=(),
        buffers=(Buffer("f32", (64, 50), True, False, 64 * 200),),
        kind="copy",
        partitionable=True,
        code_hash="",
    )
    measured = lru_misses(trace_of(nest), 1 * KIB)
    assert fitted_misses(nest, 1 * KIB).lines == pytest.approx(measured, rel=0.03)


def test_stored_lines_are_those_of_stored_buffers(nest_of):
    misses = fitted_misses(nest_of("transpose"), 1024 * KIB)
    assert (misses.lines, misses.stored_lines) == (pytest.approx(256), pytest.approx(128))


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(1, 1e9))
def test_kept_share_falls_with_the_working_set(first, second, capacity):
    low, high = sorted((first, second))
    assert 0 <= DEFAULT_FIT.kept(high * capacity, capacity) <= DEFAULT_FIT.kept(low * capacity, capacity) <= 1


def test_kept_share_has_no_step_at_eight_tenths():
    below, above = (DEFAULT_FIT.kept(share * 1e6, 1e6) for share in (0.799, 0.801))
    assert below - above < 0.01
    assert DEFAULT_FIT.kept(1e6, 1e6) == pytest.approx(0.5)
    assert DEFAULT_FIT.kept(0.0, 1e6) == 1.0
    assert SoftCapacity(steepness=1000).kept(2e6, 1e6) == pytest.approx(0.0, abs=1e-12)


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    depth=st.integers(1, 40),
    small=st.integers(64, 100_000),
    factor=st.floats(1, 100),
)
def test_larger_caches_miss_less_and_never_less_than_once_per_line(rows, columns, depth, small, factor):
    nest = product(rows, columns, depth)
    first, second = (fitted_misses(nest, size) for size in (small, small * factor))
    executed = 4 * rows * columns * depth
    assert second.lines <= first.lines * (1 + 1e-9)
    assert first.lines <= executed * (1 + 1e-9)
    assert 0 <= first.stored_lines <= first.lines * (1 + 1e-9)
    assert second.lines >= fitted_misses(nest, 1e12).lines * (1 - 1e-9)


def test_a_cache_without_bytes_is_refused(nest_of):
    with pytest.raises(ValueError, match="capacity_bytes is 0"):
        fitted_misses(nest_of("fill"), 0)
