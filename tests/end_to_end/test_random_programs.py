"""Random compositions of operators: fusion, views and placement must not change what a program computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from torch_pim.compiler_hook.target import Target

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for

SIZES = (1, 2, 3, 5, 8)
STEPS = 8


@dataclass(frozen=True)
class Operator:
    """A function of one or two earlier values that can always be applied, whatever their shapes."""

    name: str
    function: Callable[..., Tensor]
    inputs: int = 1


def _axis(x: Tensor, choice: int) -> int:
    return choice % max(1, x.dim())


def _other_sizes(x: Tensor, y: Tensor) -> Tensor:
    """y with as many dimensions as x; each that is not of the size of x is cut to one element."""
    while y.dim() > x.dim():
        y = y.select(0, 0)
    while y.dim() < x.dim():
        y = y.unsqueeze(0)
    for axis in range(x.dim()):
        if y.shape[axis] != x.shape[axis]:
            y = y.narrow(axis, 0, 1)
    return y


def _product(x: Tensor, y: Tensor) -> Tensor:
    a = x.reshape(-1, x.shape[-1]) if x.dim() else x.reshape(1, 1)
    b = y.reshape(-1, y.shape[-1]) if y.dim() else y.reshape(1, 1)
    width = min(a.shape[1], b.shape[1])
    return a[:, :width] @ b[:8, :width].t() * 0.5


OPERATORS = [
    Operator("tanh", lambda x, c: torch.tanh(x)),
    Operator("exp", lambda x, c: torch.exp(-x.abs())),
    Operator("relu", lambda x, c: torch.relu(x) + 0.5),
    Operator("where", lambda x, c: torch.where(x > 0.1, x, 0.5 * x)),
    Operator("scale", lambda x, c: x * (0.25 * c) - 0.3),
    Operator("softmax", lambda x, c: x.softmax(_axis(x, c))),
    Operator("norm", lambda x, c: F.layer_norm(x, x.shape[-1:]) if x.dim() else x),
    Operator("sum", lambda x, c: x.sum(_axis(x, c))),
    Operator("mean", lambda x, c: x.mean(_axis(x, c), keepdim=True)),
    Operator("amax", lambda x, c: x.amax(_axis(x, c))),
    Operator("cumsum", lambda x, c: x.cumsum(_axis(x, c)) * 0.3),
    Operator("sort", lambda x, c: x.sort(_axis(x, c))[0]),
    Operator("turn", lambda x, c: x.transpose(_axis(x, c), _axis(x, c + 1))),
    Operator("flip", lambda x, c: x.flip(_axis(x, c)) if x.dim() else x),
    Operator("cut", lambda x, c: x.narrow(_axis(x, c), 0, (x.shape[_axis(x, c)] + 1) // 2) if x.dim() else x),
    Operator("stride", lambda x, c: x[::2] if x.dim() else x),
    Operator("flatten", lambda x, c: x.reshape(-1)[:40]),
    Operator("unsqueeze", lambda x, c: x.unsqueeze(_axis(x, c)) if x.dim() < 3 else x),
    Operator("pad", lambda x, c: F.pad(x, (1, c % 2)) if x.dim() else x),
    Operator("rows", lambda x, c: x[torch.arange(3) % x.shape[0]] if x.dim() else x),
    Operator("update", lambda x, c: x.index_fill(0, torch.tensor([0]), 0.7) if x.dim() else x),
    Operator("half", lambda x, c: x.to(torch.float64).mul(0.5).to(torch.float32)),
    Operator("add", lambda x, y, c: x + _other_sizes(x, y), 2),
    Operator("multiply", lambda x, y, c: x * torch.sigmoid(_other_sizes(x, y)), 2),
    Operator("cat", lambda x, y, c: torch.cat([x.reshape(-1), y.reshape(-1)])[:40], 2),
    Operator("product", lambda x, y, c: _product(x, y), 2),
]

Step = tuple[Operator, int, int, int]


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[list[int]], list[Step]]:
    """Shapes of the inputs, and steps: operator, which values it takes, and a number that it may use."""
    shapes = draw(st.lists(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3), min_size=1, max_size=3))
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from(OPERATORS), st.integers(0, 30), st.integers(0, 30), st.integers(0, 3)),
            min_size=2,
            max_size=STEPS,
        )
    )
    return shapes, steps


def run(steps: list[Step], *inputs: Tensor) -> list[Tensor]:
    """The values that nothing else uses, and the last one."""
    values = list(inputs)
    used: set[int] = set()
    for operator, first, second, number in steps:
        # The latest values are taken most, so that chains grow long.
        picked = [max(0, len(values) - 1 - choice % 4) for choice in (first, second)[: operator.inputs]]
        used.update(picked)
        values.append(operator.function(*(values[position] for position in picked), number))
    return [value for position, value in enumerate(values) if position >= len(inputs) and position not in used]


@pytest.fixture(scope="module")
def targets() -> list[Target]:
    return [target_for(policy) for policy in ("pim", "host")]


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(program=programs(), on_host=st.booleans())
def test_random_programs_equal_eager(
    targets: list[Target], program: tuple[list[list[int]], list[Step]], on_host: bool
) -> None:
    shapes, steps = program
    inputs = [torch.randn(shape, generator=torch.Generator().manual_seed(n)) for n, shape in enumerate(shapes)]
    expected = run(steps, *inputs)
    model, session = compiled(lambda *values: run(steps, *values), targets[on_host])
    # Values are of order one; differences of equal numbers are not compared to the last bit.
    assert_equal_to_eager(model(*inputs), expected, 2e-4, smallest_scale=1.0)
    assert not session.fallbacks
