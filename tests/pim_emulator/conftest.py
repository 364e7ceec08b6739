"""Nests that the tests of the emulator share, lowered once from PyTorch functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from torch_pim.compiler_hook.lowered import lower_model
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.function(*arguments)


def floats(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape)


def indices(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.int64)


CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "matmul": (lambda a, b: a @ b, (floats(24, 16), floats(16, 40))),
    "matmul_transposed": (lambda a, b: a @ b.T, (floats(24, 16), floats(40, 16))),
    "transpose": (lambda a: a.T.contiguous(), (floats(24, 40),)),
    "softmax": (lambda a: torch.softmax(a, -1), (floats(24, 40),)),
    "copy": (lambda a: a * 2.0, (floats(10, 7),)),
    "rows": (lambda w, i: w[i], (floats(50, 8), indices(7))),
    "cumulative": (lambda a: a.cumsum(1), (floats(24, 40),)),
    "half": (lambda a, b: a + b, (floats(512, 1024).half(), floats(512, 1024).half())),
    "single": (lambda a, b: a + b, (floats(512, 1024), floats(512, 1024))),
    "double": (lambda a, b: a * b, (floats(64, 64).double(), floats(64, 64).double())),
    # Large enough to be sampled at small budgets.
    "stream": (lambda a, b: a + b, (floats(1024, 1024), floats(1024, 1024))),
    "big_matmul": (lambda a, b: a @ b, (floats(160, 192), floats(192, 160))),
    "big_vector": (lambda a, x: a @ x, (floats(1024, 2048), floats(2048))),
    "big_transpose": (lambda a: a.T.contiguous(), (floats(1200, 1000),)),
    "big_softmax": (lambda a: torch.softmax(a, -1), (floats(256, 1024),)),
    "big_rows": (lambda w, i: w[i], (floats(20_000, 64), indices(16_000))),
    "big_chain": (lambda a: torch.tanh(a * a + a), (floats(1024, 700),)),
}

Lowered = Callable[..., tuple[ConcreteNest, ...]]


@pytest.fixture(scope="session")
def lowered() -> Lowered:
    """`lowered("matmul", "stream")`: the nests of these cases, one each."""
    known: dict[str, ConcreteNest] = {}

    def nests(*names: str) -> tuple[ConcreteNest, ...]:
        for name in names:
            if name not in known:
                function, arguments = CASES[name]
                (known[name],) = lower_model(Function(function), arguments).concrete_nests()
        return tuple(known[name] for name in names)

    return nests
