"""What the rewrites do to the code, and that they leave it alone where they would change its meaning."""

from __future__ import annotations

import re

import pytest
import torch

from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.codegen.memref import memref_of_tensor
from torch_pim.compiler_hook.codegen.pipelines import new_context
from torch_pim.compiler_hook.codegen.range_module import build_range_module
from torch_pim.compiler_hook.outline.nest_function import NestFunction

HEAD = """
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c70 = arith.constant 70 : index
"""

ROW_SUMS = f"""
func.func @nest(%x: memref<8x64xf32>, %o: memref<8xf32>) {{ {HEAD}
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
    memref.store %zero, %o[%i] : memref<8xf32>
    scf.for %k = %c0 to %c64 step %c1 {{
      %v = memref.load %x[%i, %k] : memref<8x64xf32>
      %s = memref.load %o[%i] : memref<8xf32>
      %r = arith.addf %s, %v : f32
      memref.store %r, %o[%i] : memref<8xf32>
    }}
    scf.reduce
  }}
  return
}}"""


def generated(function: NestFunction, **options: bool) -> str:
    return str(build_range_module(new_context(), [function], **options))


def run(function: NestFunction, *tensors: torch.Tensor) -> None:
    bound = (
        KernelLibrary.compile([function])
        .kernel(function.code_hash)
        .bind([memref_of_tensor(tensor) for tensor in tensors])
    )
    bound(0, bound.iterations)


def test_accumulator_is_a_register_and_its_sum_may_be_reordered(make_nest):
    text = generated(make_nest(ROW_SUMS, (8,)))
    assert text.count("iter_args") == 1
    assert text.count("memref.load") == 1
    assert text.count("memref.store") == 1
    assert "fastmath<reassoc,nsz,contract>" in text
    assert "nnan" not in text
    assert "ninf" not in text


def test_short_sums_keep_their_order(make_nest):
    text = generated(make_nest(ROW_SUMS.replace("64", "32"), (8,)))
    assert "iter_args" in text
    assert "fastmath" not in text


def test_accumulators_of_nested_loops_stay_in_one_register(make_nest):
    text = ROW_SUMS.replace("to %c64 step %c1 {", "to %c8 step %c1 {\n scf.for %q = %c0 to %c64 step %c1 {").replace(
        "memref.store %r, %o[%i] : memref<8xf32>", "memref.store %r, %o[%i] : memref<8xf32> }"
    )
    code = generated(make_nest(text, (8,)))
    assert code.count("iter_args") == 2
    assert code.count("memref.store") == 1


def test_accumulators_that_exchange_their_values(make_nest):
    text = f"""
    func.func @nest(%p: memref<f32>, %q: memref<f32>) {{ {HEAD}
      scf.for %k = %c0 to %c8 step %c1 {{
        %a = memref.load %p[] : memref<f32>
        %b = memref.load %q[] : memref<f32>
        %s = arith.addf %a, %b : f32
        memref.store %b, %p[] : memref<f32>
        memref.store %s, %q[] : memref<f32>
      }}
      return
    }}"""
    function = make_nest(text)
    assert "-> (f32, f32)" in generated(function)
    p, q = torch.tensor(0.0), torch.tensor(1.0)
    run(function, p, q)
    assert (p.item(), q.item()) == (21.0, 34.0)  # Fibonacci numbers 8 and 9


def test_no_register_while_the_buffer_is_read_elsewhere_in_the_loop(make_nest):
    # A running maximum over the buffer itself: each step reads a neighbour that an earlier step wrote.
    text = f"""
    func.func @nest(%o: memref<64xf32>) {{ {HEAD}
      scf.for %k = %c1 to %c64 step %c1 {{
        %v = memref.load %o[%k] : memref<64xf32>
        %s = memref.load %o[%c0] : memref<64xf32>
        %r = arith.addf %s, %v : f32
        memref.store %r, %o[%c0] : memref<64xf32>
      }}
      return
    }}"""
    function = make_nest(text)
    assert "iter_args" not in generated(function)
    o = torch.arange(64.0)
    run(function, o)
    assert o[0] == 63 * 64 / 2


def test_no_register_through_another_view_of_the_buffer(make_nest):
    text = f"""
    func.func @nest(%x: memref<64xf32>, %o: memref<8x8xf32>) {{ {HEAD}
      %flat = memref.collapse_shape %o [[0, 1]] : memref<8x8xf32> into memref<64xf32>
      scf.for %k = %c0 to %c64 step %c1 {{
        %v = memref.load %x[%k] : memref<64xf32>
        %s = memref.load %o[%c0, %c1] : memref<8x8xf32>
        %r = arith.addf %s, %v : f32
        memref.store %r, %o[%c0, %c1] : memref<8x8xf32>
        memref.store %v, %flat[%k] : memref<64xf32>
      }}
      return
    }}"""
    function = make_nest(text)
    assert "iter_args" not in generated(function)
    x, o = torch.arange(64.0), torch.zeros(8, 8)
    run(function, x, o)
    expected = torch.arange(64.0)
    expected[1] = 1.0 + x[2:].sum()  # Step 1 overwrites the sum with x[1].
    assert torch.equal(o.flatten(), expected)


def test_loads_before_an_empty_loop_are_guarded(make_nest):
    text = f"""
    func.func @nest(%n: index, %x: memref<?xf32>, %o: memref<8xf32>) {{ {HEAD}
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
        memref.store %zero, %o[%i] : memref<8xf32>
        scf.for %k = %c0 to %n step %c1 {{
          %v = memref.load %x[%c0] : memref<?xf32>
          %s = memref.load %o[%i] : memref<8xf32>
          %r = arith.addf %s, %v : f32
          memref.store %r, %o[%i] : memref<8xf32>
        }}
        scf.reduce
      }}
      return
    }}"""
    function = make_nest(text, (8,))
    code = generated(function)
    assert re.search(r"scf\.if .*\{\n\s*%\w+ = memref\.load %arg3", code)
    kernel = KernelLibrary.compile([function]).kernel(function.code_hash)
    o = torch.empty(8)
    kernel.bind([0, memref_of_tensor(torch.empty(0)), memref_of_tensor(o)])(0, 8)
    assert o.eq(0.0).all()
    kernel.bind([3, memref_of_tensor(torch.tensor([2.0])), memref_of_tensor(o)])(0, 8)
    assert o.eq(6.0).all()


def test_loads_do_not_pass_the_assertion_that_guards_them(make_nest):
    text = f"""
    func.func @nest(%i: memref<8xi64>, %x: memref<8xf32>, %o: memref<8x64xf32>) {{ {HEAD}
      %last = arith.constant 8 : i64
      scf.parallel (%r) = (%c0) to (%c8) step (%c1) {{
        scf.for %k = %c0 to %c64 step %c1 {{
          %a = memref.load %i[%r] : memref<8xi64>
          %ok = arith.cmpi ult, %a, %last : i64
          cf.assert %ok, "index out of range"
          %p = arith.index_cast %a : i64 to index
          %v = memref.load %x[%p] : memref<8xf32>
          memref.store %v, %o[%r, %k] : memref<8x64xf32>
        }}
        scf.reduce
      }}
      return
    }}"""
    code = generated(make_nest(text, (8,)))
    assert code.index("cf.assert") < code.index("memref.load %arg3")
    assert code.index("memref.load %arg3") < code.index("to %c64")
    assert "cf.assert" not in generated(make_nest(text, (8,)), keep_assertions=False)


def test_stored_values_are_forwarded_and_dead_stores_removed(make_nest):
    text = f"""
    func.func @nest(%x: memref<8xf32>, %t: memref<8xf32>, %o: memref<8xf32>) {{ {HEAD}
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
        memref.store %zero, %t[%i] : memref<8xf32>
        %v = memref.load %x[%i] : memref<8xf32>
        memref.store %v, %t[%i] : memref<8xf32>
        %w = memref.load %t[%i] : memref<8xf32>
        %r = arith.addf %w, %w : f32
        memref.store %r, %o[%i] : memref<8xf32>
        scf.reduce
      }}
      return
    }}"""
    function = make_nest(text, (8,))
    code = generated(function)
    assert code.count("memref.load") == 1
    assert code.count("memref.store") == 2
    x, t, o = torch.arange(8.0), torch.empty(8), torch.empty(8)
    run(function, x, t, o)
    assert torch.equal(t, x)
    assert torch.equal(o, 2 * x)


COLUMN_PRODUCT = f"""
func.func @nest(%a: memref<8x70xf32>, %b: memref<70x64xf32>, %c: memref<8x64xf32>) {{ {HEAD}
  scf.parallel (%i, %j) = (%c0, %c0) to (%c8, %c64) step (%c1, %c1) {{
    memref.store %zero, %c[%i, %j] : memref<8x64xf32>
    scf.for %k = %c0 to %c70 step %c1 {{
      %x = memref.load %a[%i, %k] : memref<8x70xf32>
      %y = memref.load %b[%k, %j] : memref<70x64xf32>
      %s = memref.load %c[%i, %j] : memref<8x64xf32>
      %m = arith.mulf %x, %y : f32
      %r = arith.addf %s, %m : f32
      memref.store %r, %c[%i, %j] : memref<8x64xf32>
    }}
    %s = memref.load %c[%i, %j] : memref<8x64xf32>
    %t = math.tanh %s : f32
    memref.store %t, %c[%i, %j] : memref<8x64xf32>
    scf.reduce
  }}
  return
}}"""


def test_parallel_loop_moves_inside_a_strided_reduction(make_nest):
    function = make_nest(COLUMN_PRODUCT, (8, 64))
    code = generated(function)
    main = code[code.index("step %c4") :]
    # Four rows of b per load and store of c, then the two that are left over.
    assert main.count("arith.mulf") == 5
    assert re.search(r"to %c68 step %c4", code)
    a, b, c = torch.randn(8, 70), torch.randn(70, 64), torch.empty(8, 64)
    run(function, a, b, c)
    torch.testing.assert_close(c, torch.tanh(a @ b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%b[%k, %j] : memref<70x64xf32>", "%b[%j, %k] : memref<64x70xf32>"),  # already contiguous in k
        ("to (%c8, %c64)", "to (%c8, %c8)"),  # too few neighbours for a vector
    ],
)
def test_parallel_loop_stays_where_nothing_is_gained(make_nest, old, new):
    text = COLUMN_PRODUCT.replace(old, new)
    if "64x70" in new:
        text = text.replace("%b: memref<70x64xf32>", "%b: memref<64x70xf32>")
    code = generated(make_nest(text, (8, 64 if "64x70" in new else 8)))
    assert "step %c4" not in code
    assert "iter_args" in code


def test_parallel_loop_stays_when_a_loaded_value_is_used_later(make_nest):
    text = COLUMN_PRODUCT.replace(
        "memref.store %zero, %c[%i, %j]",
        "%first = memref.load %c[%i, %j] : memref<8x64xf32>\n    memref.store %zero, %c[%i, %j]",
    ).replace("%t = math.tanh %s : f32", "%t = arith.addf %s, %first : f32")
    function = make_nest(text, (8, 64))
    assert "step %c4" not in generated(function)
    a, b, c = torch.randn(8, 70), torch.randn(70, 64), torch.randn(8, 64)
    expected = a @ b + c
    run(function, a, b, c)
    torch.testing.assert_close(c, expected, rtol=1e-5, atol=1e-5)
