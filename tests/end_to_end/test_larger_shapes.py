"""Shapes past tiles, caches and the size from which the host splits a nest over its threads."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from torch_pim.compiler_hook.runtime.host_pool import ACCESSES_PER_SHARE
from torch_pim.features.nest import LoopNest

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for


@pytest.mark.parametrize("policy", ["host", "pim"])
def test_matrices_past_every_tile(policy: str) -> None:
    def function(a: Tensor, b: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        hidden = F.linear(a, b.t(), v[:170]).relu()
        return a @ b, a.t() @ a, hidden, a @ v[:130], torch.baddbmm(v[:170], a[None], b[None])

    inputs = torch.randn(203, 130), torch.randn(130, 170), torch.randn(200)
    model, session = compiled(function, target_for(policy))
    assert_equal_to_eager(model(*inputs), function(*inputs))
    assert not session.fallbacks


@pytest.mark.parametrize("policy", ["host", "pim"])
def test_rows_and_columns_past_the_caches(policy: str) -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        normed = F.layer_norm(x, (x.shape[1],))
        return normed, x.softmax(1), x.softmax(0), x.sum(0), x.sum(1), x.t().contiguous(), x.argmax(0), x.cumsum(1)

    x = torch.randn(257, 700)
    model, session = compiled(function, target_for(policy))
    assert_equal_to_eager(model(x), function(x))
    nests = [nest for graph in session.graphs for placed in graph.placed for nest in placed.problem.nests]
    assert sum(_accesses(nest) >= 2 * ACCESSES_PER_SHARE for nest in nests if nest.partitionable) >= 3


def _accesses(nest: LoopNest) -> float:
    return sum(access.probability * nest.executions(access.loop) for access in nest.accesses)


@pytest.mark.parametrize("policy", ["host", "pim"])
def test_images(policy: str) -> None:
    def function(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        y = F.conv2d(x, w, padding=1)
        return y, F.max_pool2d(y.relu(), 3, 2, 1), y.mean((2, 3)), F.interpolate(y, scale_factor=2.0)

    inputs = torch.randn(2, 17, 33, 35), torch.randn(21, 17, 3, 3)
    model, session = compiled(function, target_for(policy))
    assert_equal_to_eager(model(*inputs), function(*inputs))
    assert not session.fallbacks


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_long_sums_in_half_precision(dtype: torch.dtype) -> None:
    """Sums of thousands of terms: they accumulate in f32, as eager's do."""

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x @ y, x.sum(1), x.mean(), x.softmax(1), F.layer_norm(x, (x.shape[1],)), x.var(1)

    inputs = torch.rand(5, 4099).to(dtype), torch.rand(4099, 3).to(dtype)
    model, _ = compiled(function, target_for("pim"))
    assert_equal_to_eager(model(*inputs), function(*inputs))
