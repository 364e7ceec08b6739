"""One module with the range functions of several nests, ready for lowering or for instrumentation."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.forwarding import forward_stores
from torch_pim.compiler_hook.codegen.loop_rewrites import keep_in_registers
from torch_pim.compiler_hook.codegen.pipelines import run_pipeline
from torch_pim.compiler_hook.codegen.range_form import range_functions, to_range_form
from torch_pim.compiler_hook.codegen.reductions import relax_reductions
from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.outline.nest_function import NestFunction

SCHEDULE_VERSION = "1"
"""Changes with every rewrite that changes generated code: part of the key of stored traces, times and labels."""
_CLEAN_UP = "canonicalize,cse,loop-invariant-code-motion,canonicalize,cse"


def build_range_module(
    context: ir.Context, functions: Sequence[NestFunction], *, keep_assertions: bool = True
) -> ir.Module:
    """A module with one function `nest_<i>(lo, hi, params...)` per nest; raises CodegenError.

    Without `keep_assertions` checks of index bounds are left out: for runs on made-up data.
    """
    module = ir.Module.create(ir.Location.unknown(context))
    for position, function in enumerate(functions):
        to_range_form(module, function, position)
    if not keep_assertions:
        for assertion in walk(module.operation, "cf.assert"):
            assertion.erase()
    run_pipeline(module, _CLEAN_UP)
    for function in range_functions(module):
        keep_in_registers(function)
        forward_stores(function)
    run_pipeline(module, _CLEAN_UP)
    for function in range_functions(module):
        relax_reductions(function)
    return module
