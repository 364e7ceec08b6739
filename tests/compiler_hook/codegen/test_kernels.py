"""Compiled nests against PyTorch, whole and in parts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torch_pim.compiler_hook.codegen.kernel import BoundKernel
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.codegen.llvm_lowering import lower_to_llvm_dialect
from torch_pim.compiler_hook.codegen.memref import memref_of_tensor
from torch_pim.compiler_hook.codegen.pipelines import new_context
from torch_pim.compiler_hook.codegen.range_module import build_range_module
from torch_pim.compiler_hook.outline.nest_function import NestFunction

MATMUL = """
func.func @nest(%a: memref<{m}x{k}x{t}>, %b: memref<{k}x{n}x{t}>, %c: memref<{m}x{n}x{t}>) {{
  %zero = arith.constant 0.0 : {t}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant {m} : index
  %n = arith.constant {n} : index
  %k = arith.constant {k} : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {{
    memref.store %zero, %c[%i, %j] : memref<{m}x{n}x{t}>
    scf.for %p = %c0 to %k step %c1 {{
      %x = memref.load %a[%i, %p] : memref<{m}x{k}x{t}>
      %y = memref.load %b[%p, %j] : memref<{k}x{n}x{t}>
      %s = memref.load %c[%i, %j] : memref<{m}x{n}x{t}>
      %q = arith.mulf %x, %y : {t}
      %r = arith.addf %s, %q : {t}
      memref.store %r, %c[%i, %j] : memref<{m}x{n}x{t}>
    }}
    scf.reduce
  }}
  return
}}
"""

SOFTMAX = """
func.func @nest(%x: memref<?x33xf32>, %m: memref<?xf32>, %s: memref<?xf32>, %o: memref<?x33xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c33 = arith.constant 33 : index
  %n = memref.dim %x, %c0 : memref<?x33xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %low, %m[%i] : memref<?xf32>
    scf.for %j = %c0 to %c33 step %c1 {
      %v = memref.load %x[%i, %j] : memref<?x33xf32>
      %a = memref.load %m[%i] : memref<?xf32>
      %b = arith.maximumf %a, %v : f32
      memref.store %b, %m[%i] : memref<?xf32>
    }
    memref.store %zero, %s[%i] : memref<?xf32>
    scf.for %j = %c0 to %c33 step %c1 {
      %v = memref.load %x[%i, %j] : memref<?x33xf32>
      %a = memref.load %m[%i] : memref<?xf32>
      %d = arith.subf %v, %a : f32
      %e = math.exp %d : f32
      memref.store %e, %o[%i, %j] : memref<?x33xf32>
      %t = memref.load %s[%i] : memref<?xf32>
      %u = arith.addf %t, %e : f32
      memref.store %u, %s[%i] : memref<?xf32>
    }
    scf.for %j = %c0 to %c33 step %c1 {
      %e = memref.load %o[%i, %j] : memref<?x33xf32>
      %t = memref.load %s[%i] : memref<?xf32>
      %q = arith.divf %e, %t : f32
      memref.store %q, %o[%i, %j] : memref<?x33xf32>
    }
    scf.reduce
  }
  return
}
"""

TRANSPOSE = """
func.func @nest(%x: memref<?x?xf32>, %o: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %o, %c0 : memref<?x?xf32>
  %m = memref.dim %o, %c1 : memref<?x?xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
    %v = memref.load %x[%j, %i] : memref<?x?xf32>
    memref.store %v, %o[%i, %j] : memref<?x?xf32>
    scf.reduce
  }
  return
}
"""

CONVOLUTION = """
func.func @nest(%x: memref<2x3x8x9xf32>, %w: memref<4x3x3x2xf32>, %o: memref<2x4x6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%n, %f, %y, %z) = (%c0, %c0, %c0, %c0) to (%c2, %c4, %c6, %c8) step (%c1, %c1, %c1, %c1) {
    memref.store %zero, %o[%n, %f, %y, %z] : memref<2x4x6x8xf32>
    scf.for %c = %c0 to %c3 step %c1 {
      scf.for %p = %c0 to %c3 step %c1 {
        scf.for %q = %c0 to %c2 step %c1 {
          %yy = arith.addi %y, %p : index
          %zz = arith.addi %z, %q : index
          %a = memref.load %x[%n, %c, %yy, %zz] : memref<2x3x8x9xf32>
          %b = memref.load %w[%f, %c, %p, %q] : memref<4x3x3x2xf32>
          %s = memref.load %o[%n, %f, %y, %z] : memref<2x4x6x8xf32>
          %m = arith.mulf %a, %b : f32
          %r = arith.addf %s, %m : f32
          memref.store %r, %o[%n, %f, %y, %z] : memref<2x4x6x8xf32>
        }
      }
    }
    scf.reduce
  }
  return
}
"""

MIDDLE_SUM = """
func.func @nest(%x: memref<4x5x6xf64>, %o: memref<4x6xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c6) step (%c1) {
      memref.store %zero, %o[%i, %j] : memref<4x6xf64>
      scf.reduce
    }
    scf.for %k = %c0 to %c5 step %c1 {
      scf.parallel (%j) = (%c0) to (%c6) step (%c1) {
        %v = memref.load %x[%i, %k, %j] : memref<4x5x6xf64>
        %s = memref.load %o[%i, %j] : memref<4x6xf64>
        %r = arith.addf %s, %v : f64
        memref.store %r, %o[%i, %j] : memref<4x6xf64>
        scf.reduce
      }
    }
    scf.reduce
  }
  return
}
"""

OFFSET_STEPS = """
func.func @nest(%o: memref<10x12xi32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c10 = arith.constant 10 : index
  %c11 = arith.constant 11 : index
  scf.parallel (%i, %j) = (%c2, %c1) to (%c10, %c11) step (%c3, %c2) {
    %a = arith.muli %i, %c10 : index
    %b = arith.addi %a, %j : index
    %v = arith.index_cast %b : index to i32
    memref.store %v, %o[%i, %j] : memref<10x12xi32>
    scf.reduce
  }
  return
}
"""

FULL_SUM = """
func.func @nest(%x: memref<?xf32>, %o: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  memref.store %zero, %o[] : memref<f32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %s = memref.load %o[] : memref<f32>
    %r = arith.addf %s, %v : f32
    memref.store %r, %o[] : memref<f32>
  }
  return
}
"""


def bind(function: NestFunction, *tensors: torch.Tensor) -> BoundKernel:
    kernel = KernelLibrary.compile([function]).kernel(function.code_hash)
    return kernel.bind([memref_of_tensor(tensor) for tensor in tensors])


def run(function: NestFunction, *tensors: torch.Tensor) -> None:
    bound = bind(function, *tensors)
    bound(0, bound.iterations)


def run_in_parts(bound: BoundKernel, cuts: list[int]) -> None:
    """Runs the parts between the cuts, last part first."""
    edges = [0, *sorted(cut % (bound.iterations + 1) for cut in cuts), bound.iterations]
    for lo, hi in reversed(list(pairwise(edges))):
        bound(lo, hi)


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize(
    ("dtype", "element_type", "tolerance"),
    [(torch.float32, "f32", 1e-5), (torch.float64, "f64", 1e-13)],
)
def test_matmul(make_nest, dtype, element_type, tolerance):
    a, b, c = random(7, 19, dtype=dtype), random(19, 11, dtype=dtype, seed=1), torch.full((7, 11), 9.0, dtype=dtype)
    run(make_nest(MATMUL.format(m=7, k=19, n=11, t=element_type), (7, 11)), a, b, c)
    torch.testing.assert_close(c, a @ b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "element_type"), [(torch.float16, "f16"), (torch.bfloat16, "bf16")])
def test_matmul_rounds_each_step_in_narrow_types(make_nest, dtype, element_type):
    a, b, c = random(3, 5, dtype=dtype), random(5, 4, dtype=dtype, seed=1), torch.empty(3, 4, dtype=dtype)
    run(make_nest(MATMUL.format(m=3, k=5, n=4, t=element_type), (3, 4)), a, b, c)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=0.05, atol=0.05)
    assert c.isfinite().all()


def test_softmax_with_dynamic_rows_and_scratch(make_nest):
    function = make_nest(SOFTMAX, ("a0.d0",))
    for rows in (1, 5, 64):
        x, o = random(rows, 33, seed=rows), torch.empty(rows, 33)
        run(function, x, torch.empty(rows), torch.empty(rows), o)
        torch.testing.assert_close(o, torch.softmax(x, -1), rtol=1e-6, atol=1e-7)


def test_softmax_follows_ieee_for_infinities_and_nan(make_nest):
    x = random(4, 33)
    x[0, 3] = float("-inf")
    x[1, 5] = float("nan")
    x[2, 7] = float("inf")
    x[3, :] = float("-inf")
    o = torch.empty(4, 33)
    run(make_nest(SOFTMAX, ("a0.d0",)), x, torch.empty(4), torch.empty(4), o)
    torch.testing.assert_close(o, torch.softmax(x, -1), equal_nan=True)


def test_transpose_of_strided_dynamic_buffers(make_nest):
    text = TRANSPOSE.replace("%x: memref<?x?xf32>", "%x: memref<?x?xf32, strided<[?, ?], offset: ?>>").replace(
        "%x[%j, %i] : memref<?x?xf32>", "%x[%j, %i] : memref<?x?xf32, strided<[?, ?], offset: ?>>"
    )
    base = random(20, 30)
    x, o = base[2:12:2, 3:24:3], torch.empty(7, 5)
    run(make_nest(text, ("a1.d0", "a1.d1")), x, o)
    assert torch.equal(o, x.T)


def test_convolution(make_nest):
    x, w, o = random(2, 3, 8, 9), random(4, 3, 3, 2, seed=1), torch.empty(2, 4, 6, 8)
    run(make_nest(CONVOLUTION, (2, 4, 6, 8)), x, w, o)
    torch.testing.assert_close(o, torch.nn.functional.conv2d(x, w), rtol=1e-5, atol=1e-5)


def test_reduction_over_a_middle_axis_with_inner_parallel_loops(make_nest):
    x, o = random(4, 5, 6, dtype=torch.float64), torch.empty(4, 6, dtype=torch.float64)
    run(make_nest(MIDDLE_SUM, (4,)), x, o)
    torch.testing.assert_close(o, x.sum(1))


def test_lower_bounds_and_steps(make_nest):
    o = torch.zeros(10, 12, dtype=torch.int32)
    run(make_nest(OFFSET_STEPS, (3, 5)), o)
    expected = torch.zeros_like(o)
    for i in range(2, 10, 3):
        for j in range(1, 11, 2):
            expected[i, j] = 10 * i + j
    assert torch.equal(o, expected)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 10**6), max_size=5), data=st.data())
def test_parts_give_the_result_of_the_whole(make_nest, cuts, data):
    case = data.draw(st.sampled_from(["matmul", "convolution", "softmax", "transpose", "steps"]))
    if case == "matmul":
        function = make_nest(MATMUL.format(m=6, k=9, n=5, t="f32"), (6, 5))
        tensors = [random(6, 9), random(9, 5, seed=1), torch.empty(6, 5)]
    elif case == "convolution":
        function = make_nest(CONVOLUTION, (2, 4, 6, 8))
        tensors = [random(2, 3, 8, 9), random(4, 3, 3, 2, seed=1), torch.empty(2, 4, 6, 8)]
    elif case == "softmax":
        rows = data.draw(st.integers(1, 9))
        function = make_nest(SOFTMAX, ("a0.d0",))
        tensors = [random(rows, 33), torch.empty(rows), torch.empty(rows), torch.empty(rows, 33)]
    elif case == "transpose":
        n, m = data.draw(st.integers(0, 7)), data.draw(st.integers(0, 7))
        function = make_nest(TRANSPOSE, ("a1.d0", "a1.d1"))
        tensors = [random(m, n), torch.empty(n, m)]
    else:
        function = make_nest(OFFSET_STEPS, (3, 5))
        tensors = [torch.zeros(10, 12, dtype=torch.int32)]
    *inputs, output = tensors
    whole, parts = output.clone().zero_(), output.clone().zero_()
    run(function, *inputs, whole)
    run_in_parts(bind(function, *inputs, parts), cuts)
    assert torch.equal(parts, whole)


def test_one_iteration_touches_only_its_own_elements(make_nest):
    c = torch.full((6, 5), 7.0)
    a, b = random(6, 9), random(9, 5, seed=1)
    bind(make_nest(MATMUL.format(m=6, k=9, n=5, t="f32"), (6, 5)), a, b, c)(13, 14)
    changed = (c != 7.0).nonzero().tolist()
    assert changed == [[2, 3]]
    torch.testing.assert_close(c[2, 3], (a @ b)[2, 3])


def test_empty_dimensions(make_nest):
    for shape in ((0, 4), (4, 0), (0, 0)):
        bound = bind(make_nest(TRANSPOSE, ("a1.d0", "a1.d1")), torch.empty(shape[::-1]), torch.empty(shape))
        assert bound.iterations == 0
        bound(0, 0)


def test_nest_that_is_not_partitionable(make_nest):
    x, o = random(1000), torch.empty(())
    bound = bind(make_nest(FULL_SUM), x, o)
    assert bound.iterations == 1
    bound(0, 1)
    torch.testing.assert_close(o, x.sum(), rtol=1e-5, atol=1e-5)
    empty = bind(make_nest(FULL_SUM), torch.empty(0), o)
    empty(0, 1)
    assert o.item() == 0.0


def test_sum_propagates_nan_and_infinity(make_nest):
    function = make_nest(FULL_SUM)
    o = torch.empty(())
    for special, expected in (("nan", "nan"), ("inf", "inf"), ("-inf", "-inf")):
        x = random(100)
        x[37] = float(special)
        run(function, x, o)
        assert str(o.item()) == expected
    x[38] = float("inf")
    run(function, x, o)
    assert np.isnan(o.item())


def test_buffers_allocated_inside_a_nest_are_freed(make_nest):
    text = """
    func.func @nest(%x: memref<4x99xf32>, %o: memref<4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 4 : index
      %k = arith.constant 99 : index
      %z = arith.constant 0.0 : f32
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {
        %t = memref.alloc() : memref<99xf32>
        scf.for %j = %c0 to %k step %c1 {
          %v = memref.load %x[%i, %j] : memref<4x99xf32>
          %e = arith.mulf %v, %v : f32
          memref.store %e, %t[%j] : memref<99xf32>
        }
        memref.store %z, %o[%i] : memref<4xf32>
        scf.for %j = %c0 to %k step %c1 {
          %v = memref.load %t[%j] : memref<99xf32>
          %s = memref.load %o[%i] : memref<4xf32>
          %e = arith.addf %v, %s : f32
          memref.store %e, %o[%i] : memref<4xf32>
        }
        scf.reduce
      }
      return
    }"""
    function = make_nest(text, (4,))
    module = build_range_module(new_context(), [function])
    lower_to_llvm_dialect(module)
    assert str(module).count("@free(") == str(module).count("@malloc(")
    x, o = random(4, 99), torch.empty(4)
    run(function, x, o)
    torch.testing.assert_close(o, (x * x).sum(1), rtol=1e-5, atol=1e-5)
