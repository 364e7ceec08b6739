"""What a memref type says about size and strides, in elements; unknown numbers become symbols of the parameter."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from torch_pim.features import extent
from torch_pim.features.extent import Extent, Polynomial
from torch_pim.features.extraction.errors import ExtractionError
from torch_pim.features.nest import ELEMENT_BYTES

DYNAMIC = ir.ShapedType.get_dynamic_size()
"""Stands for an unknown size, stride or offset in types and attributes (the bindings use one value for all)."""


def element_type(kind: ir.Type) -> str:
    """Name of an element type that can be stored; raises ExtractionError for one without a known size."""
    name = str(kind)
    if name not in ELEMENT_BYTES:
        raise ExtractionError(f"element type {name} has no known size; expected one of {', '.join(ELEMENT_BYTES)}")
    return name


def row_major(sizes: Sequence[Extent]) -> tuple[Extent, ...]:
    """Strides of a contiguous buffer, last dimension fastest."""
    strides: list[Extent] = []
    step: Extent = 1
    for size in reversed(sizes):
        strides.append(step)
        step = extent.multiply(step, size)
    return tuple(reversed(strides))


def product(sizes: Sequence[Extent]) -> Extent:
    total: Extent = 1
    for size in sizes:
        total = extent.multiply(total, size)
    return total


def parameter_sizes(kind: ir.MemRefType, position: int) -> tuple[Extent, ...]:
    """Sizes of parameter `position`; a dynamic size i is the symbol `a<position>.d<i>`."""
    return tuple(
        Polynomial.symbol(f"a{position}.d{axis}") if size == DYNAMIC else int(size)
        for axis, size in enumerate(kind.shape)
    )


def parameter_strides(kind: ir.MemRefType, position: int) -> tuple[Extent, ...]:
    """Strides of parameter `position`; a dynamic stride i of a strided layout is the symbol `a<position>.s<i>`."""
    if is_contiguous(kind):
        return row_major(parameter_sizes(kind, position))
    strides, _ = kind.get_strides_and_offset()
    return tuple(
        Polynomial.symbol(f"a{position}.s{axis}") if stride == DYNAMIC else int(stride)
        for axis, stride in enumerate(strides)
    )


def is_contiguous(kind: ir.MemRefType) -> bool:
    """True for the row-major layout that a type without a layout has."""
    return bool(kind.affine_map == ir.AffineMap.get_identity(kind.rank, kind.context))
