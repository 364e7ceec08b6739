"""Index arithmetic, views and trip counts in extraction."""

from __future__ import annotations

import pytest

from torch_pim.features.extraction import extract_loop_nest

HEADER = """module {
  func.func @nest(%x: memref<64x32xf32>, %y: memref<64x32xf32>, %n: index, %m: index, %word: i64) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c7 = arith.constant 7 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
"""


def nest(body: str, index: str = "%p"):
    """Nest over 64 x 32 whose body computes %p from %i and %j, and loads x[%p, %j]."""
    text = f"""{HEADER}
    scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c32) step (%c1, %c1) {{
      {body}
      %v = memref.load %x[{index}, %j] : memref<64x32xf32>
      memref.store %v, %y[%i, %j] : memref<64x32xf32>
      scf.reduce
    }}
    return
  }}
}}"""
    return extract_loop_nest(text, "test", "hash")


def bounds(lower: str, upper: str, step: str, before: str = ""):
    text = f"""{HEADER}
    {before}
    scf.for %i = {lower} to {upper} step {step} {{
      %v = memref.load %x[%c0, %c0] : memref<64x32xf32>
      memref.store %v, %y[%c0, %c0] : memref<64x32xf32>
    }}
    return
  }}
}}"""
    loop = extract_loop_nest(text, "test", "hash").loops[0]
    return str(loop.trip), loop.estimated


ROW = 32 * 4


@pytest.mark.parametrize(
    ("body", "stride", "affine"),
    [
        ("%p = arith.addi %i, %c7 : index", ROW, True),
        ("%p = arith.subi %c64, %i : index", -ROW, True),
        ("%p = arith.muli %i, %c2 : index", 2 * ROW, True),
        ("%p = arith.shli %i, %c2 : index", 4 * ROW, True),
        ("%p = arith.shrui %i, %c2 : index", ROW, False),
        (
            "%a = arith.muli %i, %c4 : index\n%b = arith.addi %a, %c1 : index\n%p = arith.divui %b, %c4 : index",
            ROW,
            True,
        ),
        ("%p = arith.divui %i, %c4 : index", ROW, False),
        ("%p = arith.remui %i, %c64 : index", ROW, True),
        ("%p = arith.remui %i, %c7 : index", ROW, False),
        ("%p = arith.divsi %i, %c64 : index", 0, True),
        ("%a = arith.muli %i, %c4 : index\n%p = arith.ceildivsi %a, %c4 : index", ROW, True),
        ("%p = affine.apply affine_map<(d0)[s0] -> (d0 * 2 + s0)>(%i)[%c7]", 2 * ROW, True),
        ("%p = affine.apply affine_map<(d0) -> ((d0 * 6 + 1) floordiv 3)>(%i)", 2 * ROW, True),
        ("%p = affine.apply affine_map<(d0) -> (d0 mod 64)>(%i)", ROW, True),
        ("%p = affine.apply affine_map<(d0) -> ((d0 * 4) ceildiv 4)>(%i)", ROW, True),
        ("%p = affine.min affine_map<(d0) -> (d0, 5)>(%i)", ROW, False),
        ("%p = arith.minui %i, %c7 : index", ROW, False),
        ("%a = arith.index_cast %i : index to i64\n%p = arith.index_cast %a : i64 to index", ROW, True),
        ("%p = arith.muli %i, %j : index", ROW, False),
    ],
)
def test_row_index(body, stride, affine):
    access = nest(body).accesses[0]
    assert (dict(access.byte_strides).get(0, 0), access.affine, access.indirect) == (stride, affine, False)


def test_product_with_an_index_argument_is_a_symbolic_stride():
    access = nest("%p = arith.muli %i, %n : index").accesses[0]
    assert str(dict(access.byte_strides)[0]) == f"{ROW}*a2"


def test_shift_of_an_unknown_start_keeps_the_steps():
    access = nest("%q = arith.minsi %n, %m : index\n%p = arith.addi %i, %q : index").accesses[0]
    assert (dict(access.byte_strides)[0], access.affine, access.byte_offset) == (ROW, True, 0)


def test_clamped_loaded_index_is_indirect_with_linear_rest():
    body = """%f = memref.load %x[%i, %c0] : memref<64x32xf32>
      %w = arith.fptosi %f : f32 to i64
      %k = arith.index_cast %w : i64 to index
      %l = arith.maxsi %k, %c0 : index
      %p = arith.minsi %l, %c7 : index"""
    access = nest(body).accesses[1]
    assert (access.indirect, access.affine, access.indirect_loops, dict(access.byte_strides)) == (
        True,
        True,
        (0,),
        {1: 4},
    )


def test_carried_index_moves_with_its_loop():
    text = f"""{HEADER}
    %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %c0) -> (index) {{
      %v = memref.load %x[%p, %c0] : memref<64x32xf32>
      memref.store %v, %y[%p, %c0] : memref<64x32xf32>
      %q = arith.addi %p, %c2 : index
      scf.yield %q : index
    }}
    %v = memref.load %x[%last, %c0] : memref<64x32xf32>
    memref.store %v, %y[%c0, %c0] : memref<64x32xf32>
    return
  }}
}}"""
    carried, _, after, _ = extract_loop_nest(text, "test", "hash").accesses
    assert (carried.affine, [loop for loop, _ in carried.byte_strides]) == (False, [0])
    assert after.loop == -1


@pytest.mark.parametrize(
    ("lower", "upper", "step", "trip", "estimated"),
    [
        ("%c0", "%c64", "%c1", "64", False),
        ("%c1", "%c64", "%c7", "9", False),
        ("%c64", "%c0", "%c1", "0", False),
        ("%c0", "%n", "%c1", "1*a2", False),
        ("%n", "%m", "%c1", "-1*a2 + 1*a3", False),
        ("%c0", "%n", "%c7", "16", True),
        ("%c0", "%c64", "%n", "16", True),
    ],
)
def test_trip_counts(lower, upper, step, trip, estimated):
    assert bounds(lower, upper, step) == (trip, estimated)


def test_symbolic_bound_that_the_step_divides():
    assert bounds("%c0", "%k", "%c4", before="%k = arith.muli %n, %c32 : index") == ("8*a2", False)


def test_scalar_argument_that_is_no_index_is_unknown():
    assert bounds("%c0", "%k", "%c1", before="%k = arith.index_cast %word : i64 to index") == ("16", True)


def test_triangular_loop_takes_the_mean(nest_of):
    loop = nest_of("triangle").loops[1]
    assert (loop.trip, loop.estimated) == (51, True)  # the mean of 1 to 100 is 50.5


def test_data_dependent_loops_get_a_marked_stand_in(nest_of):
    nest = nest_of("data_dependent")
    assert [(loop.trip, loop.estimated) for loop in nest.loops] == [(10, False), (16, True), (16, True)]
    assert nest.accesses[3].indirect


def test_views_are_followed_to_the_parameter(nest_of):
    load, store = nest_of("views").accesses
    assert (load.buffer, dict(load.byte_strides)) == (0, {0: 40 * 4, 1: 4})
    assert (store.buffer, dict(store.byte_strides)) == (1, {0: 20 * 4, 1: 4})


def test_rank_reduction_transpose_and_reinterpretation():
    text = """module {
  func.func @nest(%x: memref<3x1x8x1x5xf32>, %y: memref<5x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %s = memref.subview %x[2, 0, 0, 0, 0] [1, 1, 4, 1, 5] [1, 1, 2, 1, 1]
      : memref<3x1x8x1x5xf32> to memref<1x4x5xf32, strided<[40, 10, 1], offset: 80>>
    %r = memref.reinterpret_cast %y to offset: [0], sizes: [4, 5], strides: [5, 1]
      : memref<5x4xf32> to memref<4x5xf32, strided<[5, 1]>>
    %t = memref.transpose %r (d0, d1) -> (d1, d0)
      : memref<4x5xf32, strided<[5, 1]>> to memref<5x4xf32, strided<[1, 5]>>
    scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c5) step (%c1, %c1) {
      %v = memref.load %s[%c0, %i, %j] : memref<1x4x5xf32, strided<[40, 10, 1], offset: 80>>
      memref.store %v, %t[%j, %i] : memref<5x4xf32, strided<[1, 5]>>
      scf.reduce
    }
    return
  }
}"""
    load, store = extract_loop_nest(text, "test", "hash").accesses
    assert dict(load.byte_strides) == {0: 10 * 4, 1: 4}
    assert dict(store.byte_strides) == {0: 5 * 4, 1: 4}


def test_offsets_count_from_the_first_access_of_a_buffer(nest_of):
    assert [a.byte_offset for a in nest_of("rotary").accesses] == [0, 256, 0, 256]
