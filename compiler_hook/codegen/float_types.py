"""Conversions between float types that the C runtime may lack or that PyTorch rounds in two steps."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import walk

NARROW_FLOATS = ("f16", "bf16")


def narrow_through_f32(module: ir.Module) -> None:
    """Rewrites `arith.truncf` from f64 to f16 or bf16 as two steps through f32, in place.

    PyTorch rounds in the same two steps, and a direct f64 to bf16 conversion needs `__truncdfbf2`, which libgcc 12
    does not have.
    """
    single = ir.F32Type.get(module.context)
    for operation in walk(module.operation, "arith.truncf"):
        source, result = operation.operands[0], operation.results[0]
        if str(source.type) == "f64" and str(result.type) in NARROW_FLOATS:
            with ir.InsertionPoint(operation), operation.location:
                between = ir.Operation.create("arith.truncf", results=[single], operands=[source])
            operation.operands[0] = between.result
