"""Cost of compiling, binding and calling nests, and one matrix product against PyTorch on one thread."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary, clear_kernel_cache
from torch_pim.compiler_hook.codegen.memref import MemRefValue, memref_of_tensor
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, NestFunction
from torch_pim.features.nest import Loop, LoopNest

MATMUL = """module {{ func.func @nest(%a: memref<{m}x{k}xf32>, %b: memref<{b0}x{b1}xf32>, %c: memref<{m}x{n}xf32>) {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant {m} : index
  %n = arith.constant {n} : index
  %k = arith.constant {k} : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {{
    memref.store %zero, %c[%i, %j] : memref<{m}x{n}xf32>
    scf.for %p = %c0 to %k step %c1 {{
      %x = memref.load %a[%i, %p] : memref<{m}x{k}xf32>
      %y = memref.load %b[{index}] : memref<{b0}x{b1}xf32>
      %s = memref.load %c[%i, %j] : memref<{m}x{n}xf32>
      %q = arith.mulf %x, %y : f32
      %r = arith.addf %s, %q : f32
      memref.store %r, %c[%i, %j] : memref<{m}x{n}xf32>
    }}
    scf.reduce
  }}
  return
}} }}"""


def matmul(m: int, k: int, n: int, transposed: bool = False) -> NestFunction:
    """The nest of a @ b, or of a @ b.T."""
    b0, b1 = (n, k) if transposed else (k, n)
    text = MATMUL.format(m=m, k=k, n=n, b0=b0, b1=b1, index="%j, %p" if transposed else "%p, %j")
    code_hash = hashlib.sha256(text.encode()).hexdigest()
    loops = (Loop("parallel", m, -1), Loop("parallel", n, 0))
    nest = LoopNest("matmul", loops, 2, (), (), (), "compute", True, code_hash)
    shapes = ((m, k), (b0, b1), (m, n))
    return NestFunction(code_hash, text, tuple(MemRefParameter("f32", s, (s[1], 1), 0) for s in shapes), nest)


def buffers(m: int, k: int, n: int, transposed: bool = False) -> list[torch.Tensor]:
    return [torch.rand(m, k), torch.rand(n, k) if transposed else torch.rand(k, n), torch.empty(m, n)]


def arguments(tensors: list[torch.Tensor]) -> list[MemRefValue]:
    return [memref_of_tensor(tensor) for tensor in tensors]


def bench_compile_one_nest(benchmark: BenchmarkFixture) -> None:
    function = matmul(64, 64, 64)
    benchmark.pedantic(KernelLibrary.compile, args=([function],), setup=clear_kernel_cache, rounds=10)


def bench_compile_a_batch_of_30_nests(benchmark: BenchmarkFixture) -> None:
    functions = [matmul(64, 64, 64 + i) for i in range(30)]
    benchmark.pedantic(KernelLibrary.compile, args=(functions,), setup=clear_kernel_cache, rounds=3)


def bench_bind(benchmark: BenchmarkFixture) -> None:
    function = matmul(1, 1, 1)
    kernel = KernelLibrary.compile([function]).kernel(function.code_hash)
    benchmark(kernel.bind, arguments(buffers(1, 1, 1)))


def bench_call(benchmark: BenchmarkFixture) -> None:
    function = matmul(1, 1, 1)
    bound = KernelLibrary.compile([function]).kernel(function.code_hash).bind(arguments(buffers(1, 1, 1)))
    benchmark(bound, 0, 1)


@pytest.fixture
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("transposed", [False, True], ids=["a@b", "a@b.T"])
@pytest.mark.parametrize("side", ["generated", "pytorch"])
@pytest.mark.parametrize("size", [(512, 512, 512), (1, 4096, 4096)], ids=str)
def bench_matmul(benchmark: BenchmarkFixture, size: tuple[int, int, int], side: str, transposed: bool) -> None:
    benchmark.group = f"matmul {size} {'a@b.T' if transposed else 'a@b'}"
    a, b, c = tensors = buffers(*size, transposed)
    if side == "pytorch":
        benchmark(torch.mm, a, b.T if transposed else b, out=c)
        return
    function = matmul(*size, transposed)
    bound = KernelLibrary.compile([function]).kernel(function.code_hash).bind(arguments(tensors))
    benchmark(bound, 0, bound.iterations)
    torch.testing.assert_close(c, a @ (b.T if transposed else b), rtol=1e-4, atol=1e-3)
