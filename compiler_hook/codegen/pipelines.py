"""Runs MLIR passes for code generation and turns their failures into CodegenError."""

from __future__ import annotations

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from torch_pim.compiler_hook.errors import CodegenError
from torch_pim.compiler_hook.lowering.passes import first_error


def new_context() -> ir.Context:
    """A context without threads of its own: several modules are compiled at once in contexts of their own."""
    context = ir.Context()
    context.enable_multithreading(False)
    context.emit_error_diagnostics = True
    return context


def run_pipeline(module: ir.Module, pipeline: str) -> None:
    """Runs `pipeline` (without the enclosing builtin.module) in place; raises CodegenError."""
    try:
        PassManager.parse(f"builtin.module({pipeline})", module.context).run(module.operation)
    except ir.MLIRError as error:
        raise CodegenError(first_error(str(error))) from error
