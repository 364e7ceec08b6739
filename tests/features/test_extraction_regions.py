"""Operations with regions beside loops and branches, and atomic updates."""

from __future__ import annotations

from torch_pim.features.analysis.work import operations_of
from torch_pim.features.extraction import extract_loop_nest
from torch_pim.features.nest import LoopNest


def nest(body: str) -> LoopNest:
    text = f"""module {{
  func.func @nest(%x: memref<100xf32>, %y: memref<10xf32>, %n: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    %zero = arith.constant 0.0 : f32
    {body}
    return
  }}
}}"""
    return extract_loop_nest(text, "test", "hash")


def test_parallel_loop_with_a_result_cannot_be_split():
    found = nest("""
    %sum = scf.parallel (%i) = (%c0) to (%c100) step (%c1) init (%zero) -> f32 {
      %v = memref.load %x[%i] : memref<100xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        scf.reduce.return %s : f32
      }
    }
    memref.store %sum, %y[%c0] : memref<10xf32>""")
    assert (found.partitionable, found.parallel_rank) == (False, 0)
    assert [(loop.kind, loop.trip) for loop in found.loops] == [("parallel", 100)]
    assert operations_of(found, "add") == 100


def test_a_choice_inside_the_loop_is_no_fill():
    found = nest("""
    scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
      %always = arith.constant true
      %v = scf.if %always -> (f32) {
        %k = arith.index_cast %i : index to i32
        %f = arith.sitofp %k : i32 to f32
        scf.yield %f : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %v, %x[%i] : memref<100xf32>
      scf.reduce
    }""")
    assert found.kind == "compute"


def test_two_parallel_loops_cannot_be_split_as_one():
    loop = """scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
      memref.store %zero, %x[%i] : memref<100xf32>
      scf.reduce
    }"""
    assert nest(loop).partitionable
    assert not nest(loop + "\n" + loop).partitionable
    assert not nest(loop + "\nmemref.store %zero, %y[%c0] : memref<10xf32>").partitionable


def test_atomic_updates_load_and_store():
    found = nest("""
    scf.for %i = %c0 to %c100 step %c1 {
      %v = memref.load %x[%i] : memref<100xf32>
      %o = memref.atomic_rmw addf %v, %y[%c1] : (f32, memref<10xf32>) -> f32
      %p = memref.generic_atomic_rmw %y[%c0] : memref<10xf32> {
      ^bb0(%old: f32):
        %m = arith.mulf %old, %v : f32
        memref.atomic_yield %m : f32
      }
    }""")
    assert [(a.kind, a.buffer) for a in found.accesses] == [
        ("load", 0),
        ("load", 1),
        ("store", 1),
        ("load", 1),
        ("store", 1),
    ]
    assert (operations_of(found, "add"), operations_of(found, "multiply"), operations_of(found, "other")) == (
        100,
        100,
        0,
    )


def test_switch_shares_its_cases_evenly():
    found = nest("""
    scf.for %i = %c0 to %c100 step %c1 {
      scf.index_switch %n
      case 2 {
        memref.store %zero, %x[%i] : memref<100xf32>
        scf.yield
      }
      case 5 {
        scf.yield
      }
      default {
        scf.execute_region {
          memref.store %zero, %y[%c0] : memref<10xf32>
          scf.yield
        }
      }
    }""")
    assert sorted((a.buffer, round(a.probability, 6)) for a in found.accesses) == [(0, 0.333333), (1, 0.333333)]
