"""Compiles nests and remembers them by content: equal code is compiled once per process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from torch_pim.compiler_hook.codegen.engine import DEFAULT_OPT_LEVEL, Engine
from torch_pim.compiler_hook.codegen.isolation import compile_naming_failures
from torch_pim.compiler_hook.codegen.kernel import Kernel
from torch_pim.compiler_hook.codegen.llvm_lowering import lower_to_llvm_dialect
from torch_pim.compiler_hook.codegen.pipelines import new_context
from torch_pim.compiler_hook.codegen.range_module import build_range_module
from torch_pim.compiler_hook.outline.nest_function import NestFunction

CACHED_KERNELS = 4096
"""How many kernels the process keeps for later libraries; the least recently used go first."""

_cache: OrderedDict[tuple[str, int], Kernel] = OrderedDict()
_lock = threading.Lock()


class KernelLibrary:
    """Kernels of the unique nests of one program."""

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self._kernels = dict(kernels)

    @staticmethod
    def compile(functions: Sequence[NestFunction], opt_level: int = DEFAULT_OPT_LEVEL) -> KernelLibrary:
        """Compiles what the process has not compiled yet; raises CodegenError naming each nest that failed."""
        unique = {function.code_hash: function for function in functions}
        kernels: dict[str, Kernel] = {}
        with _lock:
            for code_hash in unique:
                kernel = _cache.get((code_hash, opt_level))
                if kernel is not None:
                    _cache.move_to_end((code_hash, opt_level))
                    kernels[code_hash] = kernel
            missing = [function for code_hash, function in unique.items() if code_hash not in kernels]
            for kernel in compile_naming_failures(missing, lambda several: _compile_module(several, opt_level)):
                kernels[kernel.function.code_hash] = kernel
                _cache[kernel.function.code_hash, opt_level] = kernel
            while len(_cache) > CACHED_KERNELS:
                _cache.popitem(last=False)
        return KernelLibrary(kernels)

    def kernel(self, code_hash: str) -> Kernel:
        """The compiled nest; raises KeyError for a hash that was not compiled."""
        try:
            return self._kernels[code_hash]
        except KeyError:
            raise KeyError(f"no nest with code hash {code_hash!r} in this library of {len(self)}") from None

    def __len__(self) -> int:
        return len(self._kernels)

    def __contains__(self, code_hash: object) -> bool:
        return code_hash in self._kernels


def clear_kernel_cache() -> None:
    """Forgets the process's kernels; libraries that use them keep theirs."""
    with _lock:
        _cache.clear()


def _compile_module(functions: Sequence[NestFunction], opt_level: int) -> list[Kernel]:
    module = build_range_module(new_context(), functions)
    lower_to_llvm_dialect(module)
    engine = Engine(module, opt_level)
    return [Kernel(function, engine, entry) for function, entry in zip(functions, engine.entries, strict=True)]
