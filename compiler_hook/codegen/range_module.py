"""One module with the range functions of several nests, ready for lowering or for instrumentation."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.pipelines import run_pipeline
from torch_pim.compiler_hook.codegen.range_form import to_range_form
from torch_pim.compiler_hook.outline.nest_function import NestFunction


def build_range_module(context: ir.Context, functions: Sequence[NestFunction]) -> ir.Module:
    """A module with one function `nest_<i>(lo, hi, params...)` per nest; raises CodegenError."""
    module = ir.Module.create(ir.Location.unknown(context))
    for position, function in enumerate(functions):
        to_range_form(module, function, position)
    run_pipeline(module, "canonicalize,cse")
    return module
