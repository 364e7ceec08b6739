"""Sizes, strides and offset of a buffer view, and how each view operation changes them (all in elements)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a view lie, counted in elements from the start of the buffer."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def span(self) -> tuple[int, int]:
        """Half-open range of element offsets that the view touches; (offset, offset) when empty."""
        if self.elements == 0:
            return self.offset, self.offset
        low = self.offset + sum(min(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True))
        high = self.offset + sum(max(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True))
        return low, high + 1


def contiguous(shape: Sequence[int]) -> Layout:
    """Row-major layout from offset 0."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return Layout(tuple(shape), tuple(reversed(strides)))


def static_layout(parameter: MemRefParameter) -> Layout | None:
    """The layout a type fixes completely, or None."""
    if parameter.offset is None or None in parameter.shape or None in parameter.strides:
        return None
    return Layout(
        tuple(s for s in parameter.shape if s is not None),
        tuple(s for s in parameter.strides if s is not None),
        parameter.offset,
    )


def subview(
    source: Layout, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int], dropped: Sequence[int]
) -> Layout:
    kept = [d for d in range(len(sizes)) if d not in dropped]
    start = source.offset + sum(o * s for o, s in zip(offsets, source.strides, strict=True))
    return Layout(tuple(sizes[d] for d in kept), tuple(source.strides[d] * steps[d] for d in kept), start)


def expand(source: Layout, groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> Layout:
    strides = [1] * len(sizes)
    for dimension, group in enumerate(groups):
        step = source.strides[dimension]
        for position in reversed(group):
            strides[position] = step
            step *= sizes[position]
    return Layout(tuple(sizes), tuple(strides), source.offset)


def collapse(source: Layout, groups: Sequence[Sequence[int]]) -> Layout:
    shape, strides = [], []
    for group in groups:
        shape.append(math.prod(source.shape[d] for d in group))
        # The stride of a collapsed group is that of its last dimension with more than one element.
        wide = [d for d in group if source.shape[d] != 1]
        strides.append(source.strides[wide[-1] if wide else group[-1]])
    return Layout(tuple(shape), tuple(strides), source.offset)


def reshape(source: Layout, shape: Sequence[int]) -> Layout:
    if source.strides != contiguous(source.shape).strides:
        raise LoweringError("memref.reshape of a strided view is not supported")
    made = contiguous(shape)
    return Layout(made.shape, made.strides, source.offset)
