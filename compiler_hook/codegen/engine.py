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
_MATH_LIBRARY = "libm.so.6"
_COMPILER_RUNTIME = "libgcc_s.so.1"
"""Sonames on Linux, the only system that the wheels of torch-mlir are tested on here."""


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

    Generated code finds the symbols of libraries that were loaded globally, so neither a path nor a C compiler is
    needed. Raises CodegenError without libm; the runtime is needed for few conversions and powers only.
    """
    try:
        ctypes.CDLL(_MATH_LIBRARY, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise CodegenError(f"expected the C math library {_MATH_LIBRARY} where the loader finds it: {error}") from error
    try:
        ctypes.CDLL(_COMPILER_RUNTIME, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return (_MATH_LIBRARY,)
    return _MATH_LIBRARY, _COMPILER_RUNTIME
