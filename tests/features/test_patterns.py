"""Reductions, contractions, stride classes and vectorisation."""

from __future__ import annotations

import pytest

from torch_pim.features.analysis.contractions import contractions
from torch_pim.features.analysis.reductions import reductions
from torch_pim.features.analysis.strides import stride_class, stride_shares
from torch_pim.features.analysis.vectorisation import vectorisation


@pytest.mark.parametrize(
    ("name", "sizes", "is_vector"),
    [
        ("matmul", (1, 256, 128, 512), False),
        ("gemv_f16", (1, 4096, 1, 1024), True),
        ("batched_matmul", (8, 32, 16, 64), False),
        ("convolution", (1, 4 * 8 * 8, 16, 8 * 3 * 3), False),
    ],
)
def test_contractions(nest_of, name, sizes, is_vector):
    (found,) = contractions(nest_of(name))
    assert (found.batch, found.m, found.n, found.k) == sizes
    assert found.is_vector == is_vector
    assert found.macs == sizes[0] * sizes[1] * sizes[2] * sizes[3]
    assert found.result.kind == "store"
    assert {found.left.buffer, found.right.buffer} == {0, 1}


@pytest.mark.parametrize("name", ["softmax", "cumulative_sum", "sibling_trees", "scatter", "transpose", "fill"])
def test_no_contraction(nest_of, name):
    assert contractions(nest_of(name)) == ()


def test_reductions(nest_of):
    assert [(r.store.buffer, r.length, r.executions) for r in reductions(nest_of("softmax"))] == [
        (2, 1000, 128_000),
        (3, 1000, 128_000),
    ]
    assert [r.length for r in reductions(nest_of("convolution"))] == [72]
    assert [r.length for r in reductions(nest_of("cumulative_sum"))] == [50]
    assert reductions(nest_of("scatter")) == ()  # the place is data


def test_stride_classes(nest_of):
    _, a, b, c, _ = nest_of("matmul").accesses
    assert [stride_class(x, 2) for x in (a, b, c)] == ["unit", "strided", "invariant"]
    assert [stride_class(x, 1) for x in (a, b, c)] == ["invariant", "unit", "unit"]
    ids, table, _ = nest_of("gather").accesses
    assert [stride_class(x, 0) for x in (ids, table)] == ["unit", "indirect"]
    assert stride_class(table, 1) == "unit"
    assert stride_class(nest_of("upsample").accesses[0], 0) == "strided"


def test_stride_shares(nest_of, nest_names):
    assert stride_shares(nest_of("transpose")) == {"unit": 0.5, "strided": 0.5, "invariant": 0.0, "indirect": 0.0}
    assert stride_shares(nest_of("scatter")) == {"unit": 0.5, "strided": 0.0, "invariant": 0.0, "indirect": 0.5}
    for name in nest_names:
        if not nest_of(name).symbols:
            assert sum(stride_shares(nest_of(name)).values()) == pytest.approx(1.0)


def test_vectorisation(nest_of):
    matmul = vectorisation(nest_of("matmul"))
    fills = 1 / (4 * 512 + 1)  # the fill is vectorised as it stands, the product only along j
    assert (matmul.as_emitted, matmul.interchanged) == (pytest.approx(fills), 1.0)
    assert vectorisation(nest_of("gemv_f16")).as_emitted == 1.0
    assert vectorisation(nest_of("transpose")).interchanged == 0.0
    assert vectorisation(nest_of("gather")).as_emitted == 1.0  # a row is contiguous
    assert vectorisation(nest_of("scatter")).interchanged == 0.0
    assert vectorisation(nest_of("branches")).interchanged == 0.0
