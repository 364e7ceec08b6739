"""Memory behaves as in eager: what a model changes in place, returns as it is, or gives away."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for


def test_inputs_that_the_model_changes() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1.0)
        y[:, 1:3] = x[:, :2] * 2
        return x.sum(0)

    a, b = torch.randn(3, 5), torch.randn(3, 5)
    mine, theirs = (a.clone(), b.clone()), (a.clone(), b.clone())
    model, _ = compiled(function, target_for("pim"))
    assert_equal_to_eager(model(*mine), function(*theirs))
    assert_equal_to_eager(mine, theirs)


def test_inputs_that_the_model_only_reads_keep_their_values() -> None:
    def function(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        return x.sort(0)[0], x.cumsum(0), x.index_put((i,), x[:1]), x.scatter(0, i[None], 1.0), x.relu()

    x, i = torch.randn(3, 5), torch.tensor([2])
    kept = x.clone()
    model, _ = compiled(function, target_for("pim"))
    assert_equal_to_eager(model(x, i), function(x, i))
    assert torch.equal(x, kept)


class Counter(nn.Module):
    """A buffer that every call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("memory", torch.zeros(2, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.memory.mul_(0.5).add_(x)
        return self.memory * self.calls


def test_buffers_that_the_model_changes() -> None:
    module, reference = Counter(), Counter()
    model, session = compiled(module, target_for("pim"))
    for _ in range(3):
        x = torch.randn(2, 4)
        assert_equal_to_eager(model(x), reference(x))
    assert_equal_to_eager(dict(module.named_buffers()), dict(reference.named_buffers()))
    assert not session.fallbacks


def test_results_are_the_callers_own() -> None:
    """Writing to a result changes neither an argument, nor a constant of the model, nor another result."""

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x + 1, x + 1, torch.arange(4) * 2, torch.tensor([1.5, 2.5]), x.clone(), torch.zeros(3)

    x = torch.randn(2, 3)
    kept = x.clone()
    model, _ = compiled(function, target_for("pim"))
    first = model(x)
    for position, result in enumerate(first):
        assert all(other.data_ptr() != result.data_ptr() for other in first[position + 1 :])
        result.fill_(77)
    assert torch.equal(x, kept)
    assert_equal_to_eager(model(x), function(x))


def test_views_of_arguments_stay_views() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.t(), x[1]

    x = torch.randn(3, 5)
    model, _ = compiled(function, target_for("pim"))
    turned, row = model(x)
    assert_equal_to_eager((turned, row), function(x))
    row.zero_()
    assert x[1].abs().sum() == 0.0


def test_an_argument_returned_as_it_is() -> None:
    model, _ = compiled(lambda x, n: (x, x * 2, n, None), target_for("pim"))
    x = torch.randn(3)
    same, _, number, nothing = model(x, 5)
    assert same is x
    assert (number, nothing) == (5, None)


def test_strides_of_results_are_those_of_eager() -> None:
    images = torch.randn(2, 3, 6, 5).to(memory_format=torch.channels_last)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x * 2, x.permute(0, 2, 3, 1) + 1, x.transpose(1, 2).contiguous() + 1, (x + 1).transpose(2, 3)

    model, _ = compiled(function, target_for("pim"))
    actual, expected = model(images), function(images)
    assert_equal_to_eager(actual, expected)
    assert [t.stride() for t in actual] == [t.stride() for t in expected]


def test_autocast_and_inference_mode() -> None:
    module = nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4)).eval()
    x = torch.randn(3, 5)
    model, session = compiled(module, target_for("pim"))
    with torch.inference_mode():
        assert_equal_to_eager(model(x), module(x))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert_equal_to_eager(model(x), module(x), 4e-2)
    assert not session.fallbacks
