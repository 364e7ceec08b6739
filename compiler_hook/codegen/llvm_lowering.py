"""From range functions to the LLVM dialect."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.float_types import narrow_through_f32
from torch_pim.compiler_hook.codegen.pipelines import run_pipeline
from torch_pim.compiler_hook.lowering.passes import walk

_SUPPORTED_TYPES = (
    # Arithmetic on bf16 becomes arithmetic on f32 with conversions that need no hardware and no library.
    "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32},"
    "func.func(math-expand-ops{ops=rsqrt},math-extend-to-supported-types{target-type=f32},"
    "arith-expand{include-bf16=true})"
)
_INTEGER_POWERS = "convert-math-to-funcs"
_FREE_ALLOCATIONS = "buffer-deallocation-pipeline,convert-bufferization-to-memref"
_TO_LLVM = (
    "expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "convert-math-to-llvm{approximate-log1p=false},convert-math-to-libm,convert-complex-to-standard,"
    "convert-index-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm{use-aligned-alloc=false},"
    "convert-func-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,convert-arith-to-llvm,"
    "canonicalize,cse,reconcile-unrealized-casts"
)


def lower_to_llvm_dialect(module: ir.Module) -> None:
    """Lowers range functions in place, each memref argument to its descriptor fields; raises CodegenError."""
    narrow_through_f32(module)
    run_pipeline(module, _SUPPORTED_TYPES)
    _call_expm1(module)
    if walk(module.operation, "math.ipowi"):
        run_pipeline(module, _INTEGER_POWERS)
    if walk(module.operation, "memref.alloc"):
        run_pipeline(module, _FREE_ALLOCATIONS)
    run_pipeline(module, _TO_LLVM)


def _call_expm1(module: ir.Module) -> None:
    """Calls libm for `math.expm1`: the pass would write exp(x) - 1, which is far off near 0."""
    declared: set[str] = set()
    for operation in walk(module.operation, "math.expm1"):
        kind = operation.results[0].type
        name = "expm1f" if str(kind) == "f32" else "expm1"
        if name not in declared:
            declared.add(name)
            with ir.InsertionPoint.at_block_begin(module.body), operation.location:
                ir.Operation.create(
                    "func.func",
                    regions=1,
                    attributes={
                        "sym_name": ir.StringAttr.get(name),
                        "function_type": ir.TypeAttr.get(ir.FunctionType.get([kind], [kind])),
                        "sym_visibility": ir.StringAttr.get("private"),
                    },
                )
        with ir.InsertionPoint(operation), operation.location:
            call = ir.Operation.create(
                "func.call",
                results=[kind],
                operands=list(operation.operands),
                attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
            )
        operation.results[0].replace_all_uses_with(call.result)
        operation.erase()
