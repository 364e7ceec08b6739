"""Compilation: the process-wide cache, errors that name the nest, several threads."""

from __future__ import annotations

import threading

import pytest
import torch

from torch_pim.compiler_hook.codegen.engine import Engine, load_math_libraries
from torch_pim.compiler_hook.codegen.kernel import Kernel, memref_slots
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary, clear_kernel_cache
from torch_pim.compiler_hook.codegen.llvm_lowering import lower_to_llvm_dialect
from torch_pim.compiler_hook.codegen.memref import memref_of_tensor
from torch_pim.compiler_hook.codegen.pipelines import new_context
from torch_pim.compiler_hook.codegen.range_form import range_functions
from torch_pim.compiler_hook.codegen.range_module import build_range_module
from torch_pim.compiler_hook.errors import CodegenError


def fill(number: float, operation: str = "arith.negf") -> str:
    return f"""
    func.func @nest(%o: memref<16xf32>) {{
      %v = arith.constant {number:e} : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 16 : index
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
        %w = {operation} %v : f32
        memref.store %w, %o[%i] : memref<16xf32>
        scf.reduce
      }}
      return
    }}"""


def result(kernel: Kernel) -> float:
    o = torch.zeros(16)
    kernel.bind([memref_of_tensor(o)])(0, 16)
    assert o.eq(o[0]).all()
    return float(o[0])


def test_equal_code_is_compiled_once(make_nest):
    first, second = make_nest(fill(1.0), (16,)), make_nest(fill(2.0), (16,))
    library = KernelLibrary.compile([first, second, first])
    again = KernelLibrary.compile([second])
    assert len(library) == 2
    assert first.code_hash in library
    assert again.kernel(second.code_hash) is library.kernel(second.code_hash)
    assert KernelLibrary.compile([second], opt_level=0).kernel(second.code_hash) is not again.kernel(second.code_hash)
    clear_kernel_cache()
    assert KernelLibrary.compile([second]).kernel(second.code_hash) is not again.kernel(second.code_hash)
    assert result(library.kernel(first.code_hash)) == -1.0
    assert result(again.kernel(second.code_hash)) == -2.0
    with pytest.raises(KeyError, match="no nest with code hash 'other'"):
        library.kernel("other")


def test_nothing_to_compile():
    assert len(KernelLibrary.compile([])) == 0


SEQUENTIAL = (
    fill(1.0)
    .replace("scf.parallel (%i) = (%c0) to (%n) step (%c1)", "scf.for %i = %c0 to %n step %c1")
    .replace("scf.reduce", "")
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("func.func @nest(", "not valid MLIR"),
        (fill(1.0, "unknown.operation"), "not valid MLIR"),
        (SEQUENTIAL, r"one top-level scf\.parallel beside constants and views, found scf\.for"),
        ("func.func private @other()\n" + fill(1.0), "one function @nest, found func.func, func.func"),
    ],
)
def test_errors_name_the_nest_and_its_operators(make_nest, text, reason):
    good, bad = make_nest(fill(3.0), (16,)), make_nest(text, (16,), name="nest_of_layer_7")
    with pytest.raises(CodegenError, match=rf"nest nest_of_layer_7 \(aten\.test\): .*{reason}"):
        KernelLibrary.compile([good, bad])
    assert result(KernelLibrary.compile([good]).kernel(good.code_hash)) == -3.0


def test_a_reduction_in_the_parallel_loop_is_refused(make_nest):
    text = """
    func.func @nest(%x: memref<16xf32>) {
      %v = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 16 : index
      %s = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%v) -> f32 {
        %w = memref.load %x[%i] : memref<16xf32>
        scf.reduce(%w : f32) {
          ^bb0(%a: f32, %b: f32):
            %c = arith.addf %a, %b : f32
            scf.reduce.return %c : f32
        }
      }
      return
    }"""
    with pytest.raises(CodegenError, match=r"scf\.parallel with a reduction is not canonical"):
        KernelLibrary.compile([make_nest(text, (16,))])


def test_all_failures_of_a_batch_are_told(make_nest):
    bad = [make_nest(f"func.func @nest( // {i}", (16,), name=f"broken_{i}") for i in range(2)]
    with pytest.raises(CodegenError, match=r"broken_0(.|\n)*broken_1"):
        KernelLibrary.compile(bad)


def test_threads_compile_the_same_nests(make_nest):
    functions = [make_nest(fill(float(n)), (16,)) for n in range(1, 7)]
    clear_kernel_cache()
    found: list[list[int]] = []

    def work(order: int) -> None:
        library = KernelLibrary.compile(functions[::order])
        assert [result(library.kernel(f.code_hash)) for f in functions] == [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]
        found.append([id(library.kernel(f.code_hash)) for f in functions])

    threads = [threading.Thread(target=work, args=(order,)) for order in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(ids == found[0] for ids in found)


def test_kernels_keep_their_code_alive(make_nest):
    function = make_nest(fill(8.0), (16,))
    bound = KernelLibrary.compile([function]).kernel(function.code_hash).bind([memref_of_tensor(torch.zeros(16))])
    clear_kernel_cache()
    bound(0, 16)


def test_the_three_steps_by_hand_as_instrumentation_needs_them(make_nest):
    function = make_nest(fill(5.0), (16,))
    module = build_range_module(new_context(), [function])
    assert [str(f.attributes["sym_name"]) for f in range_functions(module)] == ['"nest_0"']
    lower_to_llvm_dialect(module)
    assert [f.name for f in range_functions(module)] == ["llvm.func"]
    engine = Engine(module, opt_level=1)
    assert result(Kernel(function, engine, engine.entries[0])) == -5.0


def test_more_arguments_than_parameters(make_nest):
    wider = make_nest(fill(6.0).replace("%o: memref<16xf32>", "%o: memref<16xf32>, %spare: memref<?xi64>"), (16,))
    narrow = make_nest(fill(6.0), (16,))
    module = build_range_module(new_context(), [wider])
    lower_to_llvm_dialect(module)
    engine = Engine(module)
    kernel = Kernel(narrow, engine, engine.entries[0])
    o, spare = torch.zeros(16), memref_of_tensor(torch.zeros(3, dtype=torch.int64))
    arguments = [memref_of_tensor(o)]
    kernel.bind_slots([*kernel.slots(arguments), *memref_slots(spare)], arguments)(0, 16)
    assert o.eq(-6.0).all()


def test_the_math_library_is_found():
    assert any(name.startswith("libm") for name in load_math_libraries())
