"""Extraction of hand-written nests: loops, accesses and operations against counts made by hand."""

from __future__ import annotations

import pytest

from torch_pim.features.analysis import work
from torch_pim.features.nest import LoopNest

F32 = 4


def loops(nest: LoopNest) -> list[tuple[str, object, int]]:
    return [(loop.kind[0], loop.trip, loop.parent) for loop in nest.loops]


def strides(nest: LoopNest, position: int) -> dict[int, object]:
    return dict(nest.accesses[position].byte_strides)


def operations(nest: LoopNest) -> dict[tuple[str, str, int], float]:
    return {(o.kind, o.element_type, o.loop): o.count for o in nest.operations}


def test_matmul(nest_of):
    nest = nest_of("matmul")
    assert loops(nest) == [("p", 256, -1), ("p", 128, 0), ("s", 512, 1)]
    assert (nest.parallel_rank, nest.partitionable, nest.kind) == (2, True, "compute")
    assert [(a.kind, a.buffer, a.loop) for a in nest.accesses] == [
        ("store", 2, 1),
        ("load", 0, 2),
        ("load", 1, 2),
        ("load", 2, 2),
        ("store", 2, 2),
    ]
    assert strides(nest, 1) == {0: 512 * F32, 2: F32}
    assert strides(nest, 2) == {1: F32, 2: 128 * F32}
    assert strides(nest, 4) == {0: 128 * F32, 1: F32}
    assert operations(nest) == {("add", "f32", 2): 1.0, ("multiply", "f32", 2): 1.0}
    assert work.flops(nest) == 2 * 256 * 128 * 512
    assert work.accesses_of(nest, "load") == 3 * 256 * 128 * 512
    assert work.accesses_of(nest, "store") == 256 * 128 * 512 + 256 * 128
    assert [(b.shape, b.nbytes, b.loaded, b.stored) for b in nest.buffers] == [
        ((256, 512), 256 * 512 * F32, True, False),
        ((512, 128), 512 * 128 * F32, True, False),
        ((256, 128), 256 * 128 * F32, True, True),
    ]


def test_half_precision_gemv_counts_conversions_and_two_byte_steps(nest_of):
    nest = nest_of("gemv_f16")
    assert loops(nest) == [("p", 4096, -1), ("s", 1024, 0)]
    assert strides(nest, 0) == {0: 2048, 1: 2}
    assert strides(nest, 1) == {1: 2}
    assert operations(nest)["convert", "f32", 1] == 2.0
    assert work.flops(nest) == 2 * 4096 * 1024
    assert work.accessed_bytes(nest) == 4096 * 1024 * (2 + 2 + 4 + 4)


def test_batched_matmul(nest_of):
    nest = nest_of("batched_matmul")
    assert loops(nest) == [("p", 8, -1), ("p", 32, 0), ("p", 16, 1), ("s", 64, 2)]
    assert nest.parallel_trip == 8 * 32 * 16
    assert strides(nest, 1) == {0: 64 * 16 * F32, 2: F32, 3: 16 * F32}


def test_convolution_with_stride_two(nest_of):
    nest = nest_of("convolution")
    assert [loop.trip for loop in nest.loops] == [4, 16, 8, 8, 8, 3, 3]
    row, plane, image = 17 * F32, 17 * 17 * F32, 8 * 17 * 17 * F32
    assert strides(nest, 0) == {0: image, 2: 2 * row, 3: 2 * F32, 4: plane, 5: row, 6: F32}
    assert strides(nest, 1) == {1: 8 * 9 * F32, 4: 9 * F32, 5: 3 * F32, 6: F32}
    # affine.apply d0 * 2 + d1 is two index operations, muli and addi are two more.
    assert operations(nest)["address", "index", 6] == 4.0


def test_transpose_is_a_copy(nest_of):
    nest = nest_of("transpose")
    assert nest.kind == "copy"
    assert strides(nest, 0) == {0: 32 * F32, 1: F32}
    assert strides(nest, 1) == {0: F32, 1: 64 * F32}
    assert nest.operations == ()


def test_softmax_has_three_loops_under_one_parallel_loop(nest_of):
    nest = nest_of("softmax")
    assert loops(nest) == [("p", 128, -1), ("s", 1000, 0), ("s", 1000, 0), ("s", 1000, 0)]
    assert operations(nest) == {
        ("add", "f32", 1): 1.0,
        ("add", "f32", 2): 2.0,
        ("transcendental", "f32", 2): 1.0,
        ("divide", "f32", 3): 1.0,
    }
    assert work.iterations(nest) == 128 * 3000
    assert work.flops(nest) == 128 * 5000


def test_gather_is_indirect_along_the_rows_only(nest_of):
    nest = nest_of("gather")
    table = nest.accesses[1]
    assert (table.indirect, table.affine, table.indirect_loops, dict(table.byte_strides)) == (True, True, (0,), {1: 4})
    assert nest.kind == "compute"
    assert operations(nest) == {
        ("add", "i64", 1): 1.0,
        ("compare", "i64", 1): 2.0,
        ("select", "i64", 1): 1.0,
        ("address", "index", 1): 1.0,
    }


def test_scatter_is_a_residue(nest_of):
    nest = nest_of("scatter")
    assert (nest.partitionable, nest.parallel_rank, nest.parallel_trip) == (False, 0, 1)
    assert loops(nest) == [("s", 100, -1)]
    assert [a.indirect_loops for a in nest.accesses] == [(), (), (0,), (0,)]


def test_cumulative_sum_keeps_its_local_buffer_after_the_parameters(nest_of):
    nest = nest_of("cumulative_sum")
    assert [b.shape for b in nest.buffers] == [(50, 64), (50, 64), ()]
    assert [b.nbytes for b in nest.buffers] == [12800, 12800, 4]
    assert strides(nest, 1) == {0: F32, 1: 64 * F32}
    assert [(a.buffer, a.loop) for a in nest.accesses if a.kind == "store"] == [(2, 0), (2, 1), (1, 1)]


def test_branches_halve_the_weight_of_their_sides(nest_of):
    nest = nest_of("branches")
    assert [(a.buffer, a.probability) for a in nest.accesses] == [(4, 1.0), (0, 0.5), (1, 0.5), (2, 1.0), (3, 1.0)]
    assert operations(nest) == {("multiply", "f32", 0): 0.5, ("branch", "i1", 0): 2.0}
    assert work.accesses_of(nest, "load") == 100 + 50 + 50


def test_conditions_on_counters_are_counted_out(nest_of):
    nest = nest_of("counted_conditions")
    # j <= i over 10 x 10: 55 of 100; i == 0 and j != 3: 9 of 100.
    assert [a.probability for a in nest.accesses] == pytest.approx([0.55, 0.45, 0.09])


def test_residue_with_a_parallel_loop_inside(nest_of):
    nest = nest_of("nested_parallel")
    assert (nest.partitionable, nest.parallel_rank) == (False, 0)
    assert loops(nest) == [("s", 5, -1), ("p", 64, 0)]
    assert strides(nest, 0) == {0: 2 * 64 * F32, 1: F32}
    assert operations(nest) == {("square_root", "f32", 1): 1.0, ("divide", "f32", 1): 1.0}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fill", "fill"),
        ("iota", "compute"),
        ("transpose", "copy"),
        ("memref_copy", "copy"),
        ("upsample", "copy"),
        ("cache_update", "copy"),
        ("rotary", "compute"),
        ("gather", "compute"),
    ],
)
def test_kinds(nest_of, name, kind):
    assert nest_of(name).kind == kind


def test_memref_copy_becomes_loops(nest_of):
    nest = nest_of("memref_copy")
    assert loops(nest) == [("s", 8, -1), ("s", 16, 0)]
    assert [dict(a.byte_strides) for a in nest.accesses] == [{0: 64, 1: 4}, {0: 192, 1: 4}]
    assert not nest.partitionable


def test_two_trees_under_one_parallel_loop(nest_of):
    nest = nest_of("sibling_trees")
    assert loops(nest) == [("p", 20, -1), ("s", 30, 0), ("s", 30, 0)]
    assert nest.partitionable


def test_every_nest_has_an_innermost_loop_and_stable_hashes(nest_of, nest_names):
    assert len(nest_names) >= 20
    assert len({nest_of(name).feature_hash for name in nest_names}) == len(nest_names)
    for name in nest_names:
        assert work.innermost_loops(nest_of(name))
