"""Runs MLIR passes for code generation and turns their failures into CodegenError."""

from __future__ import annotations

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from torch_pim.compiler_hook.errors import CodegenError


def new_context() -> ir.Context:
    """A context without threads of its own: the modules are small, and starting threads costs more than it saves."""
    context = ir.Context()
    context.enable_multithreading(False)
    return context


def run_pipeline(module: ir.Module, pipeline: str) -> None:
    """Runs `pipeline` (without the enclosing builtin.module) in place; CodegenError holds the first diagnostic."""
    found: list[str] = []

    def note(diagnostic: ir.Diagnostic) -> bool:
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            found.append(diagnostic.message)
        return True

    context = module.context
    emitted = context.emit_error_diagnostics
    context.emit_error_diagnostics = True  # Otherwise errors bypass the handler.
    handler = context.attach_diagnostic_handler(note)
    try:
        PassManager.parse(f"builtin.module({pipeline})", context).run(module.operation)
    except ir.MLIRError as error:
        raise CodegenError(found[0] if found else str(error)) from error
    finally:
        handler.detach()
        context.emit_error_diagnostics = emitted
    if found:
        raise CodegenError(found[0])
