"""Linalg-on-tensors modules that come as MLIR text or objects from other front ends."""

from __future__ import annotations

from pathlib import Path

from torch_mlir import ir

from torch_pim.compiler_hook.errors import FrontendError
from torch_pim.compiler_hook.frontend.graph_import import new_context
from torch_pim.compiler_hook.lowering.passes import collected_errors, first_line, run_passes


def parse_linalg(source: str | Path | ir.Module) -> ir.Module:
    """A private copy of a module given as text, as a path of a `.mlir` file, or as an object; calls are inlined.

    A string that ends in `.mlir` is a path. Raises FrontendError with the position of the first syntax error.
    """
    if isinstance(source, str) and source.endswith(".mlir") and "\n" not in source:
        source = Path(source)
    if isinstance(source, ir.Module):
        text, origin = str(source), "module"
    elif isinstance(source, Path):
        if not source.is_file():
            raise FrontendError(f"{source}: no such file; expected a linalg-on-tensors .mlir file")
        text, origin = source.read_text(), str(source)
    elif isinstance(source, str):
        text, origin = source, "module text"
    else:
        raise FrontendError(f"expected MLIR text, the path of a .mlir file or a module, got {type(source).__name__}")
    context = new_context()
    with context, collected_errors(context) as errors:
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise FrontendError(f"{origin}: not valid MLIR: {first_line(errors, error)}") from error
    run_passes(module, "inline,symbol-dce", "inlining")
    return module
