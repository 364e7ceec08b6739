"""Models compiled once for any batch size; placement is decided at the first call of each shape."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for
from .devices import RecordingDevice
from .small_models import MODELS

BATCHES = (3, 70, 8, 3)


@pytest.mark.parametrize("policy", ["host", "pim", "cost-model"])
def test_one_compilation_for_all_batch_sizes(policy: str) -> None:
    module, _ = MODELS["mlp"]()
    module.requires_grad_(False)
    model, session = compiled(module, target_for(policy), dynamic=True)
    for batch in BATCHES:
        x = torch.randn(batch, 33)
        assert_equal_to_eager(model(x), module(x))
    (graph,) = session.graphs
    assert not session.fallbacks
    # One placement per shape, in order of first call; the compiled code is shared.
    assert [plan.entries[0].parallel_trip for plan in model.plan] == [48 * batch for batch in (3, 70, 8)]
    assert len({placed.problem.nests[0].code_hash for placed in graph.placed}) == 1


def test_the_work_on_the_device_follows_the_shape() -> None:
    target = target_for("pim")
    assert isinstance(target.device, RecordingDevice)
    model, _ = compiled(lambda x: torch.relu(x) * 2, target, dynamic=True)
    for rows in (3, 70):
        target.device.runs.clear()
        model(torch.randn(rows, 5))
        assert [iterations for iterations, _ in target.device.runs] == [5 * rows]


class Encoder(nn.Module):
    """Attention over a sequence of any length, with a convolution, norm and softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(8, 8, 3, padding=1)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.convolution(x.transpose(1, 2)).transpose(1, 2)
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        return F.log_softmax(x.flatten(1), -1)


def test_batch_and_length_are_dynamic() -> None:
    module = Encoder().eval().requires_grad_(False)
    model, session = compiled(module, target_for("pim"), dynamic=True)
    for batch, length in ((2, 6), (3, 9), (5, 4), (2, 6)):
        x = torch.randn(batch, length, 8)
        assert_equal_to_eager(model(x), module(x))
    assert len(session.graphs) == 1
    assert len(session.graphs[0].placed) == 3
    assert not session.fallbacks


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat([x, x * 2], 0),
        lambda x: (x.sum(0), x.mean(), x.amax(1)),
        lambda x: x.reshape(-1, 2).softmax(0),
        lambda x: x[1:, ::2] + x.shape[0],
        lambda x: x.new_zeros(x.shape[0], 3) + torch.arange(x.shape[0])[:, None],
        lambda x: F.pad(x, (1, 2)).transpose(0, 1).contiguous(),
        lambda x: x @ x.t() / x.shape[0] ** 0.5,
        lambda x: (x.topk(2, 0), x.cumsum(0), x.flip(0)),
        lambda x: x.t(),
        lambda x: (x.view(x.shape[0] * x.shape[1]) * 2, x.shape[0] * 3),
    ],
    ids=["cat", "sums", "reshape", "slice", "arange", "pad", "product", "orders", "view", "number"],
)
def test_operators_of_dynamic_size(function: object) -> None:
    model, session = compiled(function, target_for("pim"), dynamic=True)  # type: ignore[arg-type]
    for shape in ((4, 6), (7, 4), (10, 12)):
        x = torch.randn(shape)
        assert_equal_to_eager(model(x), function(x))  # type: ignore[operator]
    assert len(session.graphs) <= 1
    assert not session.fallbacks


def test_gradients_of_dynamic_size() -> None:
    module, _ = MODELS["mlp"]()
    model, session = compiled(module, target_for("pim"), dynamic=True)
    for batch in (4, 9):
        x = torch.randn(batch, 33)
        expected = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
        assert_equal_to_eager(torch.autograd.grad(model(x).square().sum(), list(module.parameters())), expected)
    assert len(session.graphs) == 2
    assert not session.fallbacks
