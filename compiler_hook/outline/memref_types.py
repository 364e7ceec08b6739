"""MLIR types to parameter records and back."""

from __future__ import annotations

import torch
from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, Parameter, ScalarParameter

TORCH_TYPES: dict[str, torch.dtype] = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "i1": torch.bool,
    "index": torch.int64,
}  # fmt: skip
"""MLIR element type -> torch type of its storage. Unsigned bytes travel as i8 with their own dtype at the border."""


def parameter_of(mlir_type: ir.Type) -> Parameter:
    """Record of a memref or scalar type; LoweringError for any other."""
    if not isinstance(mlir_type, ir.MemRefType):
        return ScalarParameter(_checked(str(mlir_type)))
    dynamic_size, dynamic_stride = ir.MemRefType.get_dynamic_size(), ir.MemRefType.get_dynamic_stride_or_offset()
    strides, offset = mlir_type.get_strides_and_offset()
    return MemRefParameter(
        element_type=_checked(str(mlir_type.element_type)),
        shape=tuple(None if size == dynamic_size else int(size) for size in mlir_type.shape),
        strides=tuple(None if stride == dynamic_stride else int(stride) for stride in strides),
        offset=None if offset == dynamic_stride else int(offset),
    )


def with_dynamic_offset(mlir_type: ir.MemRefType) -> ir.MemRefType:
    """The same type with an unknown offset, so that views which differ only there share one nest."""
    parameter = parameter_of(mlir_type)
    assert isinstance(parameter, MemRefParameter)
    strides = ", ".join("?" if s is None else str(s) for s in parameter.strides)
    shape = "".join(f"{'?' if s is None else s}x" for s in parameter.shape)
    text = f"memref<{shape}{parameter.element_type}, strided<[{strides}], offset: ?>>"
    return ir.Type.parse(text, mlir_type.context)


def _checked(element_type: str) -> str:
    if element_type not in TORCH_TYPES:
        supported = ", ".join(TORCH_TYPES)
        raise LoweringError(f"element type {element_type} is not supported; supported: {supported}")
    return element_type
