"""Layouts of views against the strides of numpy and PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.outline.layout import (
    Layout,
    collapse,
    contiguous,
    expand,
    reshape,
    static_layout,
    subview,
)
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter

SHAPES = st.lists(st.integers(1, 6), min_size=0, max_size=4).map(tuple)


def layout_of(view: np.ndarray, base: np.ndarray) -> Layout:
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    return Layout(view.shape, tuple(s // base.itemsize for s in view.strides), offset)


@given(SHAPES)
def test_contiguous_is_torchs(shape: tuple[int, ...]) -> None:
    assert contiguous(shape).strides == torch.empty(shape).stride()
    assert contiguous(shape).elements == math.prod(shape)


@given(SHAPES, st.data())
def test_subview_is_numpys_slice(shape: tuple[int, ...], data: st.DataObject) -> None:
    base = np.zeros(shape)
    offsets, sizes, steps = [], [], []
    for size in shape:
        offsets.append(data.draw(st.integers(0, size - 1)))
        steps.append(data.draw(st.integers(1, 3)))
        sizes.append(data.draw(st.integers(1, -(-(size - offsets[-1]) // steps[-1]))))
    slices = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, steps, strict=True))
    units = [d for d, n in enumerate(sizes) if n == 1]
    dropped = data.draw(st.lists(st.sampled_from(units), unique=True)) if units else []
    expected = layout_of(base[(*slices, ...)], base)
    kept = [d for d in range(len(shape)) if d not in dropped]
    found = subview(contiguous(shape), offsets, sizes, steps, dropped)
    assert found == Layout(
        tuple(expected.shape[d] for d in kept), tuple(expected.strides[d] for d in kept), expected.offset
    )


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3))
def test_expand_and_collapse_undo_each_other(parts: list[list[int]]) -> None:
    sizes = [size for part in parts for size in part]
    groups, start = [], 0
    for part in parts:
        groups.append(tuple(range(start, start + len(part))))
        start += len(part)
    whole = contiguous([math.prod(part) for part in parts])
    expanded = expand(whole, groups, sizes)
    assert expanded == contiguous(sizes)
    assert collapse(expanded, groups).shape == whole.shape
    wide = [n > 1 for n in whole.shape]
    pairs = zip(collapse(expanded, groups).strides, whole.strides, wide, strict=True)
    assert all(a == b for a, b, matters in pairs if matters)


def test_collapse_of_a_strided_view_keeps_its_stride() -> None:
    column = subview(contiguous((4, 1, 6)), (0, 0, 2), (4, 1, 1), (1, 1, 1), ())
    assert collapse(column, ((0, 1, 2),)) == Layout((4,), (6,), 2)


def test_reshape_needs_dense_elements() -> None:
    assert reshape(Layout((2, 3), (3, 1), 5), (6,)) == Layout((6,), (1,), 5)
    with pytest.raises(LoweringError, match="strided view"):
        reshape(Layout((2, 3), (4, 1)), (6,))


def test_span() -> None:
    assert Layout((2, 3), (10, 2), 5).span() == (5, 5 + 10 + 4 + 1)
    assert Layout((3,), (-2,), 4).span() == (0, 5)
    assert Layout((0, 3), (3, 1), 7).span() == (7, 7)
    assert Layout((), (), 2).span() == (2, 3)


def test_static_layout_needs_every_number() -> None:
    assert static_layout(MemRefParameter("f32", (2, 3), (3, 1), 0)) == contiguous((2, 3))
    assert static_layout(MemRefParameter("f32", (None, 3), (3, 1), 0)) is None
    assert static_layout(MemRefParameter("f32", (2, 3), (None, 1), 0)) is None
    assert static_layout(MemRefParameter("f32", (2, 3), (3, 1), None)) is None
