"""The only place that runs MLIR pass pipelines, and what to say when one fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from torch_pim.compiler_hook.errors import LoweringError


def run_passes(module: ir.Module, pipeline: str, purpose: str) -> None:
    """Runs `pipeline` (without the enclosing builtin.module) in place; LoweringError carries a reproducible command."""
    text = f"builtin.module({pipeline})"
    with module.context as context, collected_errors(context) as errors:
        # Some passes emit an error without failing, which ends in a native assertion later.
        context.emit_error_diagnostics = True
        try:
            PassManager.parse(text).run(module.operation)
        except Exception as error:
            raise LoweringError(
                f"{purpose} failed: {first_line(errors, error)}\n"
                f"reproduce: save the input module and run "
                f"torch_mlir.passmanager.PassManager.parse({text!r}).run(module.operation)"
            ) from error
        if errors:
            raise LoweringError(f"{purpose} failed: {errors[0]}")


@contextmanager
def collected_errors(context: ir.Context) -> Iterator[list[str]]:
    """Gathers error diagnostics of the context instead of printing them; other severities are dropped."""
    errors: list[str] = []

    def take(diagnostic: ir.Diagnostic) -> bool:
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            errors.append(f"{diagnostic.message} at {diagnostic.location}")
        return True

    handler = context.attach_diagnostic_handler(take)
    try:
        yield errors
    finally:
        handler.detach()


def first_line(errors: list[str], error: Exception) -> str:
    """The first diagnostic with its place, else the first line of the exception."""
    own = [f"{d.message} at {d.location}" for d in error.error_diagnostics] if isinstance(error, ir.MLIRError) else []
    text = next(iter([*errors, *own]), str(error))
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def functions(module: ir.Module) -> Iterator[ir.OpView]:
    """The module's func.func operations that have a body."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.operation.regions[0].blocks:
            yield op


def entry_block(function: ir.OpView) -> ir.Block:
    return function.operation.regions[0].blocks[0]


def walk(root: ir.Operation, *names: str) -> list[ir.Operation]:
    """Operations below (and including) `root` with one of the names, or all of them, in pre-order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not names or op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
