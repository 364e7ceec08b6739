"""What instrumented nests record, against counts and addresses worked out by hand."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from torch_mlir import ir

from torch_pim.compiler_hook.codegen.engine import Engine
from torch_pim.compiler_hook.codegen.pipelines import new_context
from torch_pim.compiler_hook.errors import CodegenError
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.pim_emulator.tracing.arena import ORIGIN, Arena
from torch_pim.pim_emulator.tracing.batch import Trace, TracedBatch
from torch_pim.pim_emulator.tracing.instrument import access_bytes, instrument
from torch_pim.pim_emulator.tracing.recorder import TraceRecorder

Lowered = Callable[..., tuple[ConcreteNest, ...]]

WIDE = """
llvm.func @nest_0(%lo: i64, %hi: i64, %from: !llvm.ptr, %to: !llvm.ptr) {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lo : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %hi : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %source = llvm.getelementptr %from[%i] : (!llvm.ptr, i64) -> !llvm.ptr, vector<32xf32>
  %value = llvm.load %source {alignment = 4 : i64} : !llvm.ptr -> vector<32xf32>
  %target = llvm.getelementptr %to[%i] : (!llvm.ptr, i64) -> !llvm.ptr, vector<32xf32>
  llvm.store %value, %target {alignment = 4 : i64} : vector<32xf32>, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return
}
"""


@pytest.fixture(scope="module")
def recorder() -> TraceRecorder:
    return TraceRecorder(1 << 17)


def full_trace(nest: ConcreteNest, recorder: TraceRecorder, seed: int = 0) -> Trace:
    traced = TracedBatch([nest.function], recorder).open(nest, seed)
    return traced.trace(0, traced.iterations)


def loads_and_stores(trace: Trace) -> tuple[int, int]:
    stores = int((trace.entries & 1).sum())
    return trace.entries.size - stores, stores


M, N, K = 24, 40, 16


@pytest.mark.parametrize(
    ("name", "loads", "stores"),
    [
        # One dot product per result, accumulator in a register.
        ("matmul_transposed", 2 * M * N * K, M * N),
        # Interchanged, four steps of k at a time: each row of the result is set to zero, then updated K / 4 times.
        ("matmul", M * (K * N + K * N // 4 + K), M * (N + K * N // 4)),
        ("transpose", M * N, M * N),
        # Maximum, exponential, sum and division each read the row; exponential and division write it.
        ("softmax", 4 * M * N, 2 * M * N + 2 * M),
        # One index per row, not per element.
        ("rows", 7 + 7 * 8, 7 * 8),
        # The running sum is carried from column to column.
        ("cumulative", 2 * M * N - M, M * N),
    ],
)
def test_loads_and_stores_in_closed_form(
    lowered: Lowered, recorder: TraceRecorder, name: str, loads: int, stores: int
) -> None:
    assert loads_and_stores(full_trace(*lowered(name), recorder)) == (loads, stores)


def test_addresses_in_program_order(lowered: Lowered, recorder: TraceRecorder) -> None:
    (nest,) = lowered("copy")
    trace = full_trace(nest, recorder)
    addresses, sizes, writes = trace.entries >> 16, (trace.entries >> 1) & 0x7FFF, trace.entries & 1
    assert sizes.tolist() == [4] * 140
    assert writes.tolist() == [0, 1] * 70
    for written in (0, 1):
        walked = addresses[writes == written]
        assert np.diff(walked).tolist() == [4] * 69
        assert walked[0] >= ORIGIN
        assert walked[0] % 64 == 0


def test_a_sub_range_is_a_part_of_the_whole(lowered: Lowered, recorder: TraceRecorder) -> None:
    (nest,) = lowered("matmul_transposed")
    traced = TracedBatch([nest.function], recorder).open(nest, 0)
    whole = traced.trace(0, M * N).entries
    per_iteration = 2 * K + 1
    assert traced.trace(100, 250).entries.tolist() == whole[100 * per_iteration : 250 * per_iteration].tolist()
    assert traced.count(100, 250) == 150 * per_iteration
    assert traced.trace(7, 7).accesses == 0


def test_equal_nests_have_equal_traces_on_other_memory(lowered: Lowered, recorder: TraceRecorder) -> None:
    (nest,) = lowered("rows")
    kept = [full_trace(nest, recorder) for _ in range(2)]
    assert kept[0].entries.tolist() == kept[1].entries.tolist()
    other = full_trace(nest, recorder, seed=1)
    assert other.entries.tolist() != kept[0].entries.tolist(), "the seed draws other indices"


def test_gathered_rows_stay_in_the_table(lowered: Lowered, recorder: TraceRecorder) -> None:
    (nest,) = lowered("rows")
    trace = full_trace(nest, recorder)
    loads = trace.entries[(trace.entries & 1) == 0]
    table = loads[((loads >> 1) & 0x7FFF) == 4] >> 16
    assert table.size == 7 * 8
    assert table.max() - table.min() < 50 * 8 * 4


def test_overflow_is_seen_and_does_no_harm(lowered: Lowered) -> None:
    (nest,) = lowered("matmul_transposed")
    small = TraceRecorder(1000)
    reference = full_trace(nest, TraceRecorder(1 << 17))
    trace = full_trace(nest, small)
    assert trace.truncated
    assert trace.accesses == reference.accesses
    assert trace.entries.tolist() == reference.entries[:1000].tolist()
    assert not reference.truncated


def test_one_recording_at_a_time(recorder: TraceRecorder) -> None:
    with recorder.run(), pytest.raises(RuntimeError, match="one at a time"), recorder.run():
        pass
    with pytest.raises(ValueError, match="capacity is 0"):
        TraceRecorder(0)


def test_vectors_of_128_bytes(recorder: TraceRecorder) -> None:
    module = ir.Module.parse(WIDE, new_context())
    assert instrument(module, recorder) == 2
    engine = Engine(module, 1)
    memory = np.arange(64 * 32 * 2, dtype=np.float32)
    start = memory.ctypes.data
    fields = (ctypes.c_int64 * 2)(start, start + memory.nbytes // 2)
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(engine.entries[0])
    with recorder.run():
        kernel(3, 6, ctypes.addressof(fields))
    entries = recorder.entries
    assert ((entries >> 1) & 0x7FFF).tolist() == [128] * 6
    assert (entries & 1).tolist() == [0, 1] * 3
    assert ((entries >> 16) - start).tolist() == [x for i in (3, 4, 5) for x in (128 * i, 128 * i + memory.nbytes // 2)]
    assert memory[64 * 32 :][3 * 32 : 6 * 32].tolist() == memory[3 * 32 : 6 * 32].tolist(), "the copy really ran"


def test_memory_outside_the_arena_is_renamed_by_first_use() -> None:
    arena = Arena()
    base, memory = arena.take(8192)
    assert base % 4096 == 0
    assert not memory.any()

    def entries(stray: int) -> np.ndarray:
        addresses = [base + 64, stray + 20, base, stray + 4, stray + 100, stray + 20]
        return np.array([address << 16 | 4 << 1 | 1 for address in addresses], dtype=np.int64)

    first, second = (arena.relocate(entries(stray)) for stray in (0x7000_0000_0000, 0x5500_1234_5670))
    assert first.tolist() == second.tolist()
    moved = (first >> 16) - ORIGIN
    assert moved.tolist() == [64, 8192 + 4, 0, 8192 + 16 + 4, 8192 + 32 + 4, 8192 + 4]
    assert set((first & 0xFFFF).tolist()) == {4 << 1 | 1}


def test_a_nest_that_cannot_be_compiled_is_named(lowered: Lowered, recorder: TraceRecorder) -> None:
    good, bad = lowered("copy", "transpose")
    broken = replace(bad.function, canonical="module {}")
    with pytest.raises(CodegenError, match=r"nest \w+ \(aten\.permute\.default\): expected one function"):
        TracedBatch([good.function, broken], recorder)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("f32", 4), ("bf16", 2), ("i1", 1), ("!llvm.ptr", 8), ("vector<32xf32>", 128), ("vector<4x8xf64>", 256)],
)
def test_bytes_of_an_access(text: str, nbytes: int) -> None:
    assert access_bytes(text) == nbytes


@pytest.mark.parametrize(
    ("text", "message"),
    [("!llvm.struct<(i32)>", "expected a number"), ("f80", "f80"), ("vector<16384xf32>", "at most 32767")],
)
def test_untraceable_types_are_errors(text: str, message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        access_bytes(text)


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ('"llvm.intr.memcpy"(%to, %from, %hi) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()', "memcpy"),
        ("llvm.call @memrefCopy(%hi, %from, %to) : (i64, !llvm.ptr, !llvm.ptr) -> ()", "memrefCopy"),
    ],
)
def test_untraceable_operations_are_errors(recorder: TraceRecorder, operation: str, name: str) -> None:
    text = f"""
llvm.func @memrefCopy(i64, !llvm.ptr, !llvm.ptr)
llvm.func @nest_0(%lo: i64, %hi: i64, %from: !llvm.ptr, %to: !llvm.ptr) {{
  {operation}
  llvm.return
}}
"""
    with pytest.raises(CodegenError, match=f"cannot trace .*{name}"):
        instrument(ir.Module.parse(text, new_context()), recorder)
