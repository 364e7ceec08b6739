"""Arguments of compiled nests: buffers of PyTorch and NumPy, scalars, and what does not fit."""

from __future__ import annotations

import threading
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
import torch

from torch_pim.compiler_hook.codegen.kernel import Kernel
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.codegen.memref import memref_of_array, memref_of_tensor
from torch_pim.compiler_hook.codegen.scalars import scalar_bits
from torch_pim.compiler_hook.errors import NestAssertionError, ShapeError
from torch_pim.compiler_hook.outline.nest_function import NestFunction

SCALE = """
func.func @nest(%k: {s}, %x: memref<4x5x{t}, strided<[?, ?], offset: ?>>, %o: memref<4x5x{t}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c5) step (%c1, %c1) {{
    %v = memref.load %x[%i, %j] : memref<4x5x{t}, strided<[?, ?], offset: ?>>
    {body}
    memref.store %r, %o[%i, %j] : memref<4x5x{t}>
    scf.reduce
  }}
  return
}}"""

GATHER = """
func.func @nest(%table: memref<?x8xf32>, %ids: memref<?xi64>, %o: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i64
  %n = memref.dim %ids, %c0 : memref<?xi64>
  %rows = memref.dim %table, %c0 : memref<?x8xf32>
  %last = arith.index_cast %rows : index to i64
  scf.parallel (%r, %c) = (%c0, %c0) to (%n, %c8) step (%c1, %c1) {
    %id = memref.load %ids[%r] : memref<?xi64>
    %below = arith.cmpi slt, %id, %last : i64
    cf.assert %below, "index must be smaller than dim size"
    %positive = arith.cmpi sge, %id, %zero : i64
    cf.assert %positive, "index must be larger or equal to 0"
    %k = arith.index_cast %id : i64 to index
    %v = memref.load %table[%k, %c] : memref<?x8xf32>
    memref.store %v, %o[%r, %c] : memref<?x8xf32>
    scf.reduce
  }
  return
}"""


def kernel_of(function: NestFunction) -> Kernel:
    return KernelLibrary.compile([function]).kernel(function.code_hash)


def scale(make_nest, scalar: str, element: str) -> Kernel:
    body = f"%r = arith.{'mulf' if 'f' in element else 'muli'} %v, %k : {element}"
    return kernel_of(make_nest(SCALE.format(s=scalar, t=element, body=body), (4, 5)))


@pytest.mark.parametrize(
    ("element", "dtype", "number"),
    [
        ("f64", torch.float64, 1.5), ("f32", torch.float32, 2), ("f16", torch.float16, -0.5),
        ("bf16", torch.bfloat16, 0.25), ("i64", torch.int64, -3), ("i32", torch.int32, 7),
        ("i16", torch.int16, 5), ("i8", torch.int8, -1),
    ],
)  # fmt: skip
def test_scalars_and_strided_tensors(make_nest, element, dtype, number):
    base = torch.arange(9 * 40).reshape(9, 40).remainder(17).to(dtype)
    x, o = base[1::2, 3:18:3], torch.empty(4, 5, dtype=dtype)
    bound = scale(make_nest, element, element).bind([number, memref_of_tensor(x), memref_of_tensor(o)])
    bound(0, 20)
    assert torch.equal(o, x * number)


def test_numpy_arrays_with_negative_strides_and_bfloat16(make_nest):
    x = np.arange(20, dtype=np.float32).reshape(4, 5)[::-1, ::-1]
    o = np.empty((4, 5), np.float32)
    scale(make_nest, "f32", "f32").bind([2.0, memref_of_array(x), memref_of_array(o)])(0, 20)
    np.testing.assert_array_equal(o, 2 * x)
    narrow, result = np.ones((4, 5), ml_dtypes.bfloat16), np.empty((4, 5), ml_dtypes.bfloat16)
    scale(make_nest, "bf16", "bf16").bind([3.0, memref_of_array(narrow), memref_of_array(result)])(0, 20)
    assert (result == 3).all()


def test_bound_buffers_stay_alive(make_nest):
    o = torch.empty(4, 5)
    bound = scale(make_nest, "f32", "f32").bind([2.0, memref_of_tensor(torch.ones(4, 5)), memref_of_tensor(o)])
    torch.full((64, 64), 9.0)  # would be given the freed memory
    bound(0, 20)
    assert o.eq(2.0).all()


def test_gather_and_its_assertions(make_nest):
    table, ids, o = torch.randn(10, 8), torch.tensor([3, 9, 0]), torch.zeros(3, 8)
    kernel = kernel_of(make_nest(GATHER, ("a1.d0", 8), name="gather"))
    bound = kernel.bind([memref_of_tensor(t) for t in (table, ids, o)])
    bound(0, 11)
    bound(11, 24)
    assert torch.equal(o, table[ids])
    ids[1] = 10
    with pytest.raises(NestAssertionError, match="gather: index must be smaller than dim size"):
        bound(0, bound.iterations)
    ids[1] = -1
    bound(0, 8)  # does not reach the wrong index
    with pytest.raises(NestAssertionError, match="larger or equal to 0"):
        bound(0, bound.iterations)
    ids[1] = 1
    bound(0, bound.iterations)
    assert torch.equal(o, table[ids])


def test_an_assertion_that_always_fails(make_nest):
    text = GATHER.replace("arith.cmpi slt, %id, %last : i64", "arith.constant false").replace(
        "%v = memref.load", "%ignored = math.exp %zero_f : f32\n    %v = memref.load"
    )
    text = text.replace("%zero = arith", "%zero_f = arith.constant 0.5 : f32\n  %zero = arith")
    bound = kernel_of(make_nest(text, ("a1.d0", 8))).bind(
        [memref_of_tensor(t) for t in (torch.ones(4, 8), torch.zeros(3, dtype=torch.int64), torch.empty(3, 8))]
    )
    with pytest.raises(NestAssertionError, match="smaller than dim size"):
        bound(0, 24)


def test_failed_assertions_are_reported_to_the_thread_that_ran_them(make_nest):
    good, bad = torch.zeros(64, dtype=torch.int64), torch.full((64,), 99)
    kernel = kernel_of(make_nest(GATHER, ("a1.d0", 8)))
    failures: list[int] = []

    def work(ids: torch.Tensor, number: int) -> None:
        bound = kernel.bind([memref_of_tensor(t) for t in (torch.ones(4, 8), ids, torch.empty(64, 8))])
        for _ in range(200):
            try:
                bound(0, bound.iterations)
            except NestAssertionError:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(ids, n)) for n, ids in enumerate((good, bad, good, bad))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(failures)) == [1, 3]
    assert len(failures) == 400


def test_one_bound_kernel_on_several_threads(make_nest):
    x, o = torch.randn(4000, 8), torch.empty(4000, 8)
    ids = torch.randperm(4000)
    bound = kernel_of(make_nest(GATHER, ("a1.d0", 8))).bind([memref_of_tensor(t) for t in (x, ids, o)])
    cuts = [0, 1, 4000, 12345, 20000, 31999, 32000]
    threads = [threading.Thread(target=bound, args=part) for part in pairwise(cuts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(o, x[ids])


def test_ranges_outside_the_nest_are_refused(make_nest):
    bound = scale(make_nest, "f32", "f32").bind([2.0, *[memref_of_tensor(torch.ones(4, 5))] * 2])
    for lo, hi in ((-1, 3), (0, 21), (5, 4)):
        with pytest.raises(ValueError, match=r"within \[0, 20\)"):
            bound(lo, hi)


def test_arguments_that_do_not_fit_are_named(make_nest):
    kernel = scale(make_nest, "f32", "f32")
    good = memref_of_tensor(torch.ones(4, 5))
    with pytest.raises(ShapeError, match="expected 3 arguments, found 2"):
        kernel.bind([1.0, good])
    with pytest.raises(ShapeError, match="argument 1: element type"):
        kernel.bind([1.0, memref_of_tensor(torch.ones(4, 5, dtype=torch.float64)), good])
    with pytest.raises(ShapeError, match="argument 1: shape"):
        kernel.bind([1.0, memref_of_tensor(torch.ones(5, 4)), good])
    with pytest.raises(ShapeError, match="argument 1: shape"):
        kernel.bind([1.0, memref_of_tensor(torch.ones(20)), good])
    with pytest.raises(ShapeError, match="argument 2: strides"):
        kernel.bind([1.0, good, memref_of_tensor(torch.ones(5, 4).T)])
    with pytest.raises(ShapeError, match="argument 1: expected a buffer, found 3"):
        kernel.bind([1.0, 3, good])
    with pytest.raises(ShapeError, match="argument 0: expected a number of type f32"):
        kernel.bind([good, good, good])
    with pytest.raises(ShapeError, match="argument 0: 200 does not fit i8"):
        scale(make_nest, "i8", "i8").bind([200, good, good])


def test_strides_of_single_elements_do_not_matter(make_nest):
    text = SCALE.format(s="f32", t="f32", body="%r = arith.mulf %v, %k : f32").replace("4x5", "1x5")
    kernel = kernel_of(make_nest(text.replace("(%c4, %c5)", "(%c1, %c5)"), (1, 5)))
    o = torch.empty(5, 1).T  # strides (1, 1)
    kernel.bind([2.0, memref_of_tensor(torch.ones(1, 5)), memref_of_tensor(o)])(0, 5)
    assert o.eq(2.0).all()


def test_buffers_that_generated_code_cannot_use():
    with pytest.raises(TypeError, match="complex64"):
        memref_of_tensor(torch.ones(3, dtype=torch.complex64))
    with pytest.raises(TypeError, match="lazily negated"):
        memref_of_tensor(torch.ones(3, dtype=torch.complex64).conj().imag)
    with pytest.raises(TypeError, match="sparse"):
        memref_of_tensor(torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match="complex128"):
        memref_of_array(np.ones(3, np.complex128))
    with pytest.raises(TypeError, match="whole elements"):
        memref_of_array(np.ones(3, np.dtype([("a", np.float32), ("b", np.int8)]))["a"])


def test_scalar_bits_are_little_endian_patterns():
    assert scalar_bits("f32", 1.0, "x") == 0x3F800000
    assert scalar_bits("f64", -2.0, "x") == -0x4000000000000000
    assert scalar_bits("f16", 1.0, "x") == 0x3C00
    assert scalar_bits("bf16", 1.0, "x") == 0x3F80
    assert scalar_bits("i1", True, "x") == 1
    assert scalar_bits("i64", -1, "x") == -1
    for element, value in (("i1", 2), ("i32", 1.5), ("i64", 2**63), ("f32", "1"), ("complex<f32>", 1.0)):
        with pytest.raises(ShapeError, match=r"^x: "):
            scalar_bits(element, value, "x")
