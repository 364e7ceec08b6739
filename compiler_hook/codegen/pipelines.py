"""Runs MLIR for code generation and turns its failures into CodegenError."""

from __future__ import annotations

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from torch_pim.compiler_hook.errors import CodegenError
from torch_pim.compiler_hook.lowering.passes import collected_errors, first_line


def new_context() -> ir.Context:
    """A context without threads of its own: the modules are small, and starting threads costs more than it saves."""
    context = ir.Context()
    context.enable_multithreading(False)
    context.emit_error_diagnostics = True  # Otherwise errors bypass the handlers that collect them.
    return context


def parse_module(text: str, context: ir.Context) -> ir.Module:
    """A module from its text; CodegenError holds the first diagnostic."""
    with collected_errors(context) as errors:
        try:
            return ir.Module.parse(text, context)
        except ir.MLIRError as error:
            raise CodegenError(f"the canonical text is not valid MLIR: {first_line(errors, error)}") from error


def run_pipeline(module: ir.Module, pipeline: str) -> None:
    """Runs `pipeline` (without the enclosing builtin.module) in place; CodegenError holds the first diagnostic."""
    with collected_errors(module.context) as errors:
        try:
            PassManager.parse(f"builtin.module({pipeline})", module.context).run(module.operation)
        except ir.MLIRError as error:
            raise CodegenError(first_line(errors, error)) from error
    if errors:
        raise CodegenError(errors[0])
