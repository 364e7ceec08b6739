"""Checks of indices and divisors: where data decides, once, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torch_pim.compiler_hook.lowered import lower_model


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def assertions(function: Callable[..., Any], *inputs: Tensor) -> list[str]:
    """Messages of all assertions in the nests of a function."""
    nests = lower_model(Call(function), inputs).program.functions
    lines = [line for nest in nests for line in nest.canonical.splitlines() if "cf.assert" in line]
    return [line.split('"')[1] for line in lines]


X = torch.randn(6, 5)
I = torch.tensor([1, 2, 0])  # noqa: E741
ROWS = "an index is out of range for a dimension of size 6"


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (torch.mm, (X, X.t())),
        (lambda x, w: F.conv2d(x, w, padding=1), (torch.randn(1, 2, 6, 6), torch.randn(3, 2, 3, 3))),
        (lambda x: (x.softmax(0), x.var(1)), (X,)),
        (lambda x: F.interpolate(x[None, None], scale_factor=2.0), (X,)),
        (lambda x: (x.flip(0), x[1:, ::2] + 1, x.tril(), x.roll(1, 0)), (X,)),
        (lambda i: (i // 2, i % 3), (I,)),
    ],
    ids=["product", "convolution", "norms", "nearest", "moves", "constant divisors"],
)
def test_loops_over_what_shapes_give_have_none(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    """An assertion in such a loop would keep it from being vectorised."""
    assert assertions(function, *inputs) == []


def test_an_index_from_data_is_checked_once() -> None:
    assert assertions(lambda x, i: x[i], X, I) == [ROWS]
    assert assertions(lambda x, i: x.index_add(0, i, x[:3]), X, I) == [ROWS]
    both = assertions(lambda x, i: x[i, i], X, I)
    assert sorted(both) == [ROWS.replace("6", "5"), ROWS]


def test_checks_that_are_there_already_are_not_doubled() -> None:
    assert len(assertions(lambda x, i: F.embedding(i, x), X, I)) == 2


def test_divisors_from_data() -> None:
    assert set(assertions(lambda i, j: i % j, I, I + 1)) == {"an integer is divided by zero"}
    assert assertions(lambda x, y: x / y, X, X) == []
