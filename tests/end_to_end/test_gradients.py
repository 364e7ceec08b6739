"""Training: the backward pass runs as placed nests too, and gradients and buffers equal eager's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torch_pim.experiments.workloads.convolutions import ResNet

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for
from .small_models import MODELS, workload


def _residual_network() -> tuple[nn.Module, tuple[Tensor]]:
    return ResNet((8, 16), classes=10), (torch.randn(2, 3, 32, 32),)


TRAINED = {
    "mlp": MODELS["mlp"],
    "bert-small": workload("bert-small", layers=1, sequence=8, heads=2, batch=2),
    "resnet": _residual_network,
    "lstm": MODELS["lstm"],
    "embedding-bag": MODELS["embedding-bag"],
}


def step(run: Any, module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss of one pass and the gradients of all parameters.

    The loss projects the output on fixed random weights: a sum over a layer norm would have no gradient to compare.
    """
    module.zero_grad(set_to_none=True)
    output = run(*arguments)
    output = output[0] if isinstance(output, tuple) else output
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(3))
    loss = (output * weights).sum()
    loss.backward()
    return loss.detach(), {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("policy", ["host", "pim"])
@pytest.mark.parametrize("name", TRAINED)
def test_gradients_equal_eager(name: str, policy: str) -> None:
    module, arguments = TRAINED[name]()
    module.train().requires_grad_(True)
    reference = copy.deepcopy(module)
    expected = step(reference, reference, arguments)
    model, session = compiled(module, target_for(policy))
    assert_equal_to_eager(step(model, module, arguments), expected)
    assert len(expected[1]) == len(list(module.parameters()))
    # Forward and backward; running statistics of batch norm are buffers.
    assert len(session.graphs) == 2
    assert not session.fallbacks
    assert_equal_to_eager(dict(module.named_buffers()), dict(reference.named_buffers()))


def test_training_reaches_the_same_weights() -> None:
    """Five steps of an optimiser on compiled gradients end where eager ends."""
    module, arguments = MODELS["mlp"]()
    reference = copy.deepcopy(module)
    model, _ = compiled(module, target_for("pim"))
    for run, trained in ((model, module), (reference, reference)):
        optimiser = torch.optim.SGD(trained.parameters(), lr=0.01, momentum=0.9)
        for _ in range(5):
            step(run, trained, arguments)
            optimiser.step()
    assert_equal_to_eager(dict(module.named_parameters()), dict(reference.named_parameters()))


def test_gradients_of_inputs() -> None:
    x, y = (torch.randn(4, 5, requires_grad=True) for _ in range(2))
    model, session = compiled(lambda x, y: (x.softmax(1) * y.tanh()).cumsum(0)[1:], target_for("pim"))
    gradients = []
    for run in (model, model.model):
        x.grad = y.grad = None
        run(x, y).square().sum().backward()
        gradients.append((x.grad, y.grad))
    assert_equal_to_eager(*gradients)
    assert not session.fallbacks
