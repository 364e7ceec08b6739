"""From range functions to the LLVM dialect."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.pipelines import run_pipeline

_ALLOCATIONS = "buffer-deallocation-pipeline,convert-bufferization-to-memref,"
_TO_LLVM = (
    "func.func(math-expand-ops{ops=rsqrt},arith-expand{include-bf16=true}),"
    "expand-strided-metadata,lower-affine,"
    "func.func(math-extend-to-supported-types{target-type=f32}),"
    "convert-scf-to-cf,"
    "convert-math-to-llvm,convert-math-to-libm,convert-complex-to-standard,"
    "convert-index-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm{use-aligned-alloc=false},"
    "convert-func-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,convert-arith-to-llvm,"
    "canonicalize,cse,reconcile-unrealized-casts"
)


def lower_to_llvm_dialect(module: ir.Module) -> None:
    """Lowers a module of range functions in place, each memref argument to its descriptor fields; raises CodegenError."""
    run_pipeline(module, _ALLOCATIONS + _TO_LLVM)
