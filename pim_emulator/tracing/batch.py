"""Several nests compiled together with instrumentation, and traces of sub-ranges of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torch_pim.compiler_hook.codegen.arguments import allocate_arguments
from torch_pim.compiler_hook.codegen.engine import Engine
from torch_pim.compiler_hook.codegen.isolation import compile_naming_failures
from torch_pim.compiler_hook.codegen.kernel import Kernel
from torch_pim.compiler_hook.codegen.llvm_lowering import lower_to_llvm_dialect
from torch_pim.compiler_hook.codegen.pipelines import new_context
from torch_pim.compiler_hook.codegen.range_module import build_range_module
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest, NestFunction
from torch_pim.pim_emulator.tracing.arena import Arena
from torch_pim.pim_emulator.tracing.instrument import instrument
from torch_pim.pim_emulator.tracing.recorder import TraceRecorder

OPT_LEVEL = 1
"""Recording dominates instrumented code: higher levels compile no faster code, level 0 records ten times slower."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Accesses of one sub-range in program order, relocated."""

    entries: NDArray[np.int64]
    """`address << 16 | bytes << 1 | is_write`; the first ones, when there were more than the recorder holds."""
    accesses: int
    """All accesses of the sub-range, recorded or not."""

    @property
    def truncated(self) -> bool:
        return self.entries.size < self.accesses


class TracedNest:
    """An instrumented nest on buffers of its own, filled as `allocate_arguments` does (large float buffers: zeros)."""

    def __init__(self, kernel: Kernel, nest: ConcreteNest, recorder: TraceRecorder, seed: int) -> None:
        self._recorder = recorder
        self._arena = Arena()
        self._bound = kernel.bind(allocate_arguments(nest, seed, pool=self._arena))

    @property
    def iterations(self) -> int:
        return self._bound.iterations

    def count(self, low: int, high: int) -> int:
        """Accesses of iterations [low, high)."""
        with self._recorder.run():
            self._bound(low, high)
        return self._recorder.count

    def trace(self, low: int, high: int) -> Trace:
        """Runs iterations [low, high) and returns their accesses."""
        accesses = self.count(low, high)
        return Trace(self._arena.relocate(self._recorder.entries), accesses)


class TracedBatch:
    """Instrumented kernels of nests, in the variant that runs on PIM cores: as `build_range_module` makes it, with
    accumulators in registers and column walks interchanged, and without assertions.
    """

    def __init__(self, functions: Sequence[NestFunction], recorder: TraceRecorder) -> None:
        """Compiles all functions in one module; raises CodegenError naming the nests that cannot be traced."""
        self._recorder = recorder
        unique = list({function.code_hash: function for function in functions}.values())
        kernels = compile_naming_failures(unique, lambda batch: _compile_module(batch, recorder))
        self._kernels = {kernel.function.code_hash: kernel for kernel in kernels}

    def open(self, nest: ConcreteNest, seed: int) -> TracedNest:
        """The nest on fresh buffers; its function must be one of the batch."""
        return TracedNest(self._kernels[nest.function.code_hash], nest, self._recorder, seed)


def _compile_module(functions: Sequence[NestFunction], recorder: TraceRecorder) -> list[Kernel]:
    module = build_range_module(new_context(), functions, keep_assertions=False)
    lower_to_llvm_dialect(module)
    instrument(module, recorder)
    engine = Engine(module, OPT_LEVEL)
    return [Kernel(f, engine, entry) for f, entry in zip(functions, engine.entries, strict=True)]
