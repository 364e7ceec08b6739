"""Buffers as generated code sees them: a pointer, an offset, sizes and strides in elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch

TORCH_ELEMENT_TYPES: Mapping[torch.dtype, str] = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "i8",
    torch.bool: "i1",
}  # fmt: skip
NUMPY_TYPES: Mapping[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64), "f32": np.dtype(np.float32), "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i64": np.dtype(np.int64), "i32": np.dtype(np.int32), "i16": np.dtype(np.int16), "i8": np.dtype(np.int8),
    "i1": np.dtype(np.bool_), "index": np.dtype(np.int64),
}  # fmt: skip
"""Array type per MLIR element type."""

_NUMPY_ELEMENT_TYPES = {dtype: name for name, dtype in NUMPY_TYPES.items() if name != "index"}
_NUMPY_ELEMENT_TYPES[np.dtype(np.uint8)] = "i8"


@dataclass(frozen=True, slots=True)
class MemRefValue:
    """A strided buffer. `owner` keeps the memory alive; `pointer` is the byte address that `offset` counts from."""

    pointer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_type: str
    owner: object = None


def memref_of_tensor(tensor: torch.Tensor) -> MemRefValue:
    """The tensor's own memory, no copy; raises TypeError for a type, layout or device that has none."""
    element_type = TORCH_ELEMENT_TYPES.get(tensor.dtype)
    if element_type is None or tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_neg():
        raise TypeError(
            f"expected a dense CPU tensor of type {', '.join(str(t) for t in TORCH_ELEMENT_TYPES)}; "
            f"found {tensor.dtype}, {tensor.layout}, {tensor.device}{', lazily negated' if tensor.is_neg() else ''}"
        )
    return MemRefValue(tensor.data_ptr(), 0, tuple(tensor.shape), tensor.stride(), element_type, tensor)


def memref_of_array(array: np.ndarray[Any, np.dtype[Any]]) -> MemRefValue:
    """The array's own memory, no copy; raises TypeError for an element type that generated code has not."""
    element_type = _NUMPY_ELEMENT_TYPES.get(array.dtype)
    if element_type is None:
        known = ", ".join(sorted(str(dtype) for dtype in _NUMPY_ELEMENT_TYPES))
        raise TypeError(f"expected an array of type {known}; found {array.dtype}")
    strides = tuple(stride // array.itemsize for stride in array.strides)
    if any(stride * array.itemsize != nbytes for stride, nbytes in zip(strides, array.strides, strict=True)):
        raise TypeError(f"expected strides that are whole elements of {array.itemsize} bytes; found {array.strides}")
    return MemRefValue(array.ctypes.data, 0, array.shape, strides, element_type, array)
