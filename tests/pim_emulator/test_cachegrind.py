"""Miss counts against cachegrind, an independent simulator that runs the compiled code itself.

Where valgrind or a C compiler is missing, the counts that cachegrind gave when this file was written stand in.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from torch_mlir import ir
from torch_mlir.execution_engine import ExecutionEngine

from torch_pim.compiler_hook.codegen.arguments import allocate_arguments
from torch_pim.compiler_hook.codegen.engine import ADDRESS_TABLE, Engine
from torch_pim.compiler_hook.codegen.entries import add_entries
from torch_pim.compiler_hook.codegen.kernel import Argument, memref_slots
from torch_pim.compiler_hook.codegen.llvm_lowering import lower_to_llvm_dialect
from torch_pim.compiler_hook.codegen.memref import MemRefValue
from torch_pim.compiler_hook.codegen.pipelines import new_context
from torch_pim.compiler_hook.codegen.range_module import build_range_module
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES
from torch_pim.pim_emulator.caches.simulator import CacheCounts, CacheSimulator, line_limit
from torch_pim.pim_emulator.tracing.arena import Arena
from torch_pim.pim_emulator.tracing.batch import TracedBatch
from torch_pim.pim_emulator.tracing.instrument import instrument
from torch_pim.pim_emulator.tracing.recorder import TraceRecorder

Lowered = Callable[..., tuple[ConcreteNest, ...]]
Counts = tuple[int, int, int, int]
"""D1 load and store misses, LL load and store misses, of 32 KiB and 1 MiB 8-way caches."""

NAMES = ("big_matmul", "big_transpose", "big_softmax", "big_vector")
BASELINE = '[["target-cpu", "x86-64"], ["target-features", "+sse2,-avx,-avx2,-avx512f"]]'
"""Valgrind does not know every instruction of the processor at hand."""

WIDE_ROWS = 3000
SECOND = 128 * WIDE_ROWS + 96
WIDE = """
llvm.func @nest_4(%lo: i64, %hi: i64, %from: !llvm.ptr, %to: !llvm.ptr) {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lo : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %hi : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %source = llvm.getelementptr %from[%i] : (!llvm.ptr, i64) -> !llvm.ptr, vector<32xf32>
  %value = llvm.load %source {alignment = 4 : i64} : !llvm.ptr -> vector<32xf32>
  %target = llvm.getelementptr %to[%i] : (!llvm.ptr, i64) -> !llvm.ptr, vector<32xf32>
  %double = llvm.fadd %value, %value : vector<32xf32>
  llvm.store %double, %target {alignment = 4 : i64} : vector<32xf32>, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return
}
"""
"""Doubles rows of 128 bytes with one load and one store each; the rows begin in the middle of a line."""

ZEROED = {"nest_0": 160 * 160 * 4 // 64}
"""Lines that a nest sets to zero: LLVM makes that a call of memset, whose stores cachegrind counts apart."""

STORED: dict[str, Counts] = {
    "nest_0": (309760, 3, 3841, 3),
    "nest_1": (1201001, 75001, 75601, 75001),
    "nest_2": (16387, 32803, 16387, 32803),
    "nest_3": (131201, 64, 131201, 64),
    "nest_4": (6002, 6001, 6001, 6001),
}
"""What valgrind 3.19 counted for these nests."""

DRIVER = """
#include <stdint.h>
#include <stdlib.h>
{declarations}
static void forget(volatile char *other) {{
  for (int64_t i = 0; i < (8 << 20); i += 64) other[i] = 0;
}}
int main(void) {{
  char *arena = aligned_alloc(1 << 26, {arena_bytes});
  char *other = aligned_alloc(1 << 12, 8 << 20);
{calls}
  return 0;
}}
"""


def offsets(arguments: Sequence[Argument], base: int) -> list[str]:
    """Slots of the entry point as C expressions relative to the arena."""
    slots = []
    for argument in arguments:
        assert isinstance(argument, MemRefValue)
        pointer, _, *rest = memref_slots(argument)
        slots += [f"(int64_t)(arena + {pointer - base})"] * 2 + [str(value) for value in rest]
    return slots


def cachegrind(nests: Sequence[ConcreteNest], folder: Path) -> dict[str, Counts]:
    """Compiles the nests and a driver to a program, and returns what cachegrind counts in each nest."""
    context = new_context()
    module = build_range_module(context, [nest.function for nest in nests], keep_assertions=False)
    lower_to_llvm_dialect(module)
    wide = ir.Module.parse(WIDE, context)
    module.body.append(wide.body.operations[0].operation.detach_from_parent())
    add_entries(module)
    for view in module.body.operations:
        if view.operation.name == "llvm.func" and view.operation.regions[0].blocks:
            view.operation.attributes["passthrough"] = ir.Attribute.parse(BASELINE, context)
    engine = ExecutionEngine(module, opt_level=1, enable_object_dump=True, enable_pic=True)
    engine.raw_lookup(ADDRESS_TABLE)
    engine.dump_to_object_file(str(folder / "nests.o"))
    calls, declarations, largest = [], [], 4 * 128 * WIDE_ROWS
    for number in range(len(nests) + 1):
        declarations.append(f"int64_t nest_{number}_entry(int64_t, int64_t, int64_t *);")
    for number, nest in enumerate(nests):
        arena = Arena()
        slots = offsets(allocate_arguments(nest, 0, pool=arena), arena.base)
        largest = max(largest, arena.nbytes)
        iterations = nest.loop_nest.parallel_trip
        calls.append(call(number, iterations, slots))
    calls.append(call(len(nests), WIDE_ROWS, ["(int64_t)(arena + 32)", f"(int64_t)(arena + {SECOND})"]))
    arena_bytes = -(-largest // (1 << 26)) << 26
    text = DRIVER.format(declarations="\n".join(declarations), calls="\n".join(calls), arena_bytes=arena_bytes)
    (folder / "driver.c").write_text(text, encoding="utf-8")
    run(folder, "gcc", "-O1", "driver.c", "nests.o", "-lm", "-o", "driver")
    run(
        folder, "valgrind", "--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64", "--LL=1048576,8,64",
        "--cachegrind-out-file=counts", "./driver",
    )  # fmt: skip
    return read_counts(folder / "counts", [f"nest_{number}" for number in range(len(nests) + 1)])


def call(number: int, iterations: int, slots: Sequence[str]) -> str:
    fields = ", ".join(slots)
    return f"  {{ int64_t fields[] = {{{fields}}}; forget(other); nest_{number}_entry(0, {iterations}, fields); }}"


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def read_counts(path: Path, functions: Sequence[str]) -> dict[str, Counts]:
    sums = {name: np.zeros(4, dtype=np.int64) for name in functions}
    columns: list[str] = []
    current = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("events:"):
            columns = line.split()[1:]
        elif line.startswith("fn="):
            current = line[3:]
        elif line[:1].isdigit() and current in sums:
            values = dict(zip(columns, map(int, line.split()[1:]), strict=True))
            sums[current] += [values[name] for name in ("D1mr", "D1mw", "DLmr", "DLmw")]
    return {name: tuple(int(value) for value in counts) for name, counts in sums.items()}


def simulated(nests: Sequence[ConcreteNest]) -> dict[str, Counts]:
    """The same nests and rows, traced and sent through our caches."""
    recorder = TraceRecorder(1 << 24)
    batch = TracedBatch([nest.function for nest in nests], recorder)
    traces = [(traced := batch.open(nest, 0)).trace(0, traced.iterations).entries for nest in nests]
    traces.append(wide_trace(recorder))
    simulator = CacheSimulator()
    found = {}
    for number, trace in enumerate(traces):
        simulator.reset(line_limit(trace))
        simulator.count(trace)
        found[f"nest_{number}"] = counts_of(simulator.counts())
    return found


def wide_trace(recorder: TraceRecorder) -> np.ndarray:
    module = ir.Module.parse(WIDE.replace("nest_4", "nest_0"), new_context())
    instrument(module, recorder)
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    engine = Engine(module, 1)
    arena = Arena()
    base, _ = arena.take(4 * 128 * WIDE_ROWS)
    fields = (ctypes.c_int64 * 2)(base + 32, base + SECOND)
    with recorder.run():
        entry(engine.entries[0])(0, WIDE_ROWS, ctypes.addressof(fields))
    return arena.relocate(recorder.entries)


def counts_of(counts: CacheCounts) -> Counts:
    d1, ll = CACHE_BYTES.index(32 * 1024), CACHE_BYTES.index(1024 * 1024)
    return counts.load_misses[d1], counts.store_misses[d1], counts.load_misses[ll], counts.store_misses[ll]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["stored", "valgrind"])
def test_misses_agree_with_cachegrind(lowered: Lowered, tmp_path: Path, source: str) -> None:
    nests = lowered(*NAMES)
    present = all(shutil.which(command) for command in ("gcc", "valgrind"))
    expected = cachegrind(nests, tmp_path) if source == "valgrind" and present else STORED
    found = simulated(nests)
    assert found.keys() == expected.keys()
    for name, counts in found.items():
        assert counts == pytest.approx(expected[name], rel=0.005, abs=5) or name in ZEROED, name
        d1, ll = expected[name][0] + expected[name][1], expected[name][2] + expected[name][3]
        zeroed = ZEROED.get(name, 0)
        assert counts[0] + counts[1] == pytest.approx(d1 + zeroed, rel=0.005), name
        assert counts[2] + counts[3] == pytest.approx(ll + zeroed, rel=0.005), name
