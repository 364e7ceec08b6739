"""Which operations on bytes stay in 8 bits, and which go through 32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torch_pim.compiler_hook.lowered import lower_model


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def nests(function: Callable[..., Any], *inputs: Tensor) -> str:
    return "\n".join(nest.canonical for nest in lower_model(Call(function), inputs).program.functions)


BYTES = torch.ones(3, 5, dtype=torch.int8)
UNSIGNED = torch.ones(3, 5, dtype=torch.uint8)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x.flip(0),
        lambda x: (x ^ x.flip(0)) * x,
        lambda x: torch.cat([x, x], 1),
        lambda x: x.t().contiguous(),
        lambda x: x.view(15)[2:7].clone(),
    ],
    ids=["add", "bits", "cat", "transpose", "view"],
)
@pytest.mark.parametrize("x", [BYTES, UNSIGNED], ids=["int8", "uint8"])
def test_exact_operations_stay_in_bytes(function: Callable[[Tensor], Tensor], x: Tensor) -> None:
    text = nests(function, x)
    assert "i8" in text
    assert " i32" not in text


@pytest.mark.parametrize(
    ("function", "operation"),
    [
        (lambda x: x @ x.t(), "arith.muli"),
        (lambda x: x * 3, "arith.muli"),
        (lambda x: x.amax(1), "arith.maxsi"),
        (lambda x: x >> 1, "arith.shrsi"),
    ],
    ids=["product", "number", "amax", "shift"],
)
def test_others_widen_and_come_back(function: Callable[[Tensor], Tensor], operation: str) -> None:
    text = nests(function, BYTES)
    assert "arith.extsi" in text
    (used,) = {line.split(":")[-1].strip() for line in text.splitlines() if operation in line}
    assert used in ("i32", "i64")
    assert "xi8>" in text


def test_unsigned_bytes_widen_without_a_sign() -> None:
    text = nests(lambda x: x // 7, UNSIGNED)
    assert "arith.extui" in text
    assert "arith.extsi" not in text
