"""Compiles many nests in one module, and one by one when that fails, so that an error names the nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.kernel import Kernel
from torch_pim.compiler_hook.errors import CodegenError
from torch_pim.compiler_hook.outline.nest_function import NestFunction

CompileModule = Callable[[Sequence[NestFunction]], list[Kernel]]
"""Compiles all the nests in one module, in order; raises CodegenError or MLIRError if one cannot be."""


def compile_naming_failures(functions: Sequence[NestFunction], compile_module: CompileModule) -> list[Kernel]:
    """One kernel per function, in order; CodegenError names every nest that failed and its ATen operators."""
    if not functions:
        return []
    try:
        return compile_module(functions)
    except (CodegenError, ir.MLIRError) as error:
        if len(functions) == 1:
            nest = functions[0].loop_nest
            operators = ", ".join(nest.aten_operators) or "unknown operators"
            raise CodegenError(f"nest {nest.name} ({operators}): {error}") from error
    kernels: list[Kernel] = []
    failures: list[CodegenError] = []
    for function in functions:
        try:
            kernels += compile_naming_failures([function], compile_module)
        except CodegenError as error:
            failures.append(error)
    if failures:
        raise CodegenError("\n".join(str(failure) for failure in failures)) from failures[0]
    return kernels
