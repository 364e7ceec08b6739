"""Scalar arguments as the bits of an 8-byte slot."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np

from torch_pim.compiler_hook.errors import ShapeError

_INTEGER_BITS = {"index": 64, "i64": 64, "i32": 32, "i16": 16, "i8": 8}
_FLOAT_FORMATS = {"f64": "<d", "f32": "<f", "f16": "<e"}


def scalar_bits(element_type: str, value: object, what: str) -> int:
    """The value as a signed 64-bit integer whose low bytes are the scalar; raises ShapeError if it does not fit."""
    if element_type == "i1" and isinstance(value, bool | int) and value in (0, 1):
        return int(value)
    bits = _INTEGER_BITS.get(element_type)
    if bits is not None and isinstance(value, int):
        if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            return value
        raise ShapeError(f"{what}: {value} does not fit {element_type}")
    if isinstance(value, int | float):
        if element_type in _FLOAT_FORMATS:
            packed = np.asarray(value, dtype=np.dtype(_FLOAT_FORMATS[element_type])).tobytes()
            return _signed(packed)
        if element_type == "bf16":
            return _signed(np.asarray(value, dtype=ml_dtypes.bfloat16).tobytes())
    raise ShapeError(f"{what}: expected a number of type {element_type}, found {value!r}")


def _signed(packed: bytes) -> int:
    return int(struct.unpack("<q", packed.ljust(8, b"\0"))[0])
