"""The order of all lowering steps. Bump LOWERING_VERSION whenever the nests of any model may change."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.dimensions import resolve_dimensions
from torch_pim.compiler_hook.lowering.fusion import fuse_elementwise
from torch_pim.compiler_hook.lowering.linalg_form import own_results, private_initial_values, reductions_innermost
from torch_pim.compiler_hook.lowering.nan_order import order_nan
from torch_pim.compiler_hook.lowering.passes import entry_block, functions, run_passes
from torch_pim.compiler_hook.lowering.residue import wrap_residue
from torch_pim.compiler_hook.lowering.run_time_checks import check_data
from torch_pim.compiler_hook.lowering.scalar_types import narrow_numbers
from torch_pim.compiler_hook.lowering.sibling_fusion import fuse_siblings
from torch_pim.compiler_hook.lowering.split_reductions import split_long_reductions

LOWERING_VERSION = 3
"""Covers elementwise fusion, split reductions, loop order and the sibling fusion rule."""

_TORCH_BACKEND = (
    "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline{extra-library=}"
)
_LINALG = "torch-backend-to-linalg-on-tensors-backend-pipeline"
_GENERALISE = (
    "func.func(refback-generalize-tensor-pad,refback-generalize-tensor-concat),canonicalize,"
    "func.func(linalg-generalize-named-ops),canonicalize,cse"
)
_BUFFERIZE = (
    "one-shot-bufferize{allow-unknown-ops=true bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},"
    "func.func(tm-tensor-bufferize),refback-mlprogram-bufferize,canonicalize,cse"
)
_LOOPS = "func.func(refback-munge-memref-copy,tm-tensor-to-loops,convert-linalg-to-parallel-loops),canonicalize,cse"


def torch_to_linalg(module: ir.Module) -> None:
    """Torch dialect (as imported from an FX graph) to linalg-on-tensors, in place."""
    run_passes(module, _TORCH_BACKEND, "torch dialect to backend contract")
    run_passes(module, _LINALG, "torch dialect to linalg-on-tensors")
    narrow_numbers(module)
    order_nan(module)


def linalg_to_loops(module: ir.Module) -> None:
    """Linalg-on-tensors to canonical loops, in place.

    Afterwards every function body holds buffer management, index arithmetic, views, top-level `scf.parallel` nests
    without results, and residue runs wrapped in `scf.execute_region`. Function arguments are never written, and every
    result is memory of its own.
    """
    module.context.allow_unregistered_dialects = True
    run_passes(module, _GENERALISE, "linalg generalisation")
    fuse_elementwise(module)
    split_long_reductions(module)
    reductions_innermost(module)
    private_initial_values(module)
    own_results(module)
    _protect_arguments(module)
    run_passes(module, _BUFFERIZE, "bufferization")
    run_passes(module, _LOOPS, "linalg to loops")
    if any(view.operation.name.startswith("affine.") for f in functions(module) for view in entry_block(f).operations):
        run_passes(module, "lower-affine,canonicalize,cse", "arithmetic on sizes")
    resolve_dimensions(module)
    for function in functions(module):
        check_data(function)
    run_passes(module, "canonicalize,cse", "clean-up of run-time checks")
    for function in functions(module):
        fuse_siblings(function)
        wrap_residue(function)


def _protect_arguments(module: ir.Module) -> None:
    """Bufferization writes into arguments unless told otherwise; a caller's tensor must keep its value."""
    for function in functions(module):
        operation = function.operation
        count = len(operation.regions[0].blocks[0].arguments)
        with module.context, ir.Location.unknown():
            attributes = ir.DictAttr.get({"bufferization.writable": ir.BoolAttr.get(False)})
            operation.attributes["arg_attrs"] = ir.ArrayAttr.get([attributes] * count)
