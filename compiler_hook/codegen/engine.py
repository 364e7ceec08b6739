"""Machine code for a module in the LLVM dialect, held in memory for this process's CPU."""

from __future__ import annotations

import ctypes
from functools import cache

from torch_mlir import ir
from torch_mlir.execution_engine import ExecutionEngine

from torch_pim.compiler_hook.codegen.entries import ADDRESS_TABLE, add_entries
from torch_pim.compiler_hook.codegen.range_form import range_functions
from torch_pim.compiler_hook.errors import CodegenError

DEFAULT_OPT_LEVEL = 2


class Engine:
    """Compiled entry points of the range functions of one module; the code lives as long as this object."""

    def __init__(self, module: ir.Module, opt_level: int = DEFAULT_OPT_LEVEL) -> None:
        """Adds the entry points to the module (LLVM dialect) in place and compiles it; raises CodegenError."""
        load_math_libraries()
        count = len(range_functions(module))
        add_entries(module)
        try:
            self._engine = ExecutionEngine(module, opt_level=opt_level)
            table = self._engine.raw_lookup(ADDRESS_TABLE)
        except RuntimeError as error:
            raise CodegenError(f"LLVM could not compile the module: {error}") from error
        if not table:
            raise CodegenError("LLVM could not link the module: a symbol is missing (see the message on stderr)")
        slots = (ctypes.c_int64 * max(count, 1))()
        pointer = ctypes.c_void_p(ctypes.addressof(slots))
        packed = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(table)(ctypes.addressof(packed))
        self.entries: tuple[int, ...] = tuple(slots[:count])


@cache
def load_math_libraries() -> tuple[str, ...]:
    """Makes libm and the compiler's runtime visible to generated code; returns the names that were loaded.

    Generated code finds symbols of libraries that were loaded globally, so no path and no C compiler is needed.
    """
    loaded = []
    for names, needed in ((("libm.so.6", "libm.so"), "expf"), (("libgcc_s.so.1", "libclang_rt.so"), "__powisf2")):
        for name in names:
            try:
                library = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
                getattr(library, needed)
            except (OSError, AttributeError):
                continue
            loaded.append(name)
            break
    if "libm" not in "".join(loaded):
        raise CodegenError("no C math library: expected libm.so.6 where the dynamic loader finds it")
    return tuple(loaded)
