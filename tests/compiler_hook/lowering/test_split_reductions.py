"""Long reductions into few results are shared between cores."""

from __future__ import annotations

import pytest
import torch

import torch_pim
from torch_pim.compiler_hook.lowered import lower_model
from torch_pim.compiler_hook.lowering.split_reductions import MIN_SPLIT, PARTS


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


CASES = {
    "sum of a vector": (lambda x: x.sum(), (4 * MIN_SPLIT,)),
    "sum over three dimensions": (lambda x: x.sum(), (PARTS, 64, 32)),
    "sum of squares": (lambda x: (x * x).sum(), (PARTS, 2 * MIN_SPLIT // PARTS)),
    "maximum": (lambda x: x.amax(), (MIN_SPLIT,)),
    "minimum": (lambda x: x.amin(), (MIN_SPLIT,)),
    "few rows": (lambda x: x.sum(1), (3, 2 * MIN_SPLIT)),
    "few columns": (lambda x: x.sum(0), (2 * MIN_SPLIT, 3)),
    "any": (lambda x: (x > 4.0).any(), (MIN_SPLIT,)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_long_part_is_parallel_and_the_result_is_pytorchs(name):
    function, shape = CASES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    nests = [f.loop_nest for f in lower_model(Function(function), (x,)).program.functions]
    longest = max(nests, key=lambda nest: max(nest.executions(a.loop) for a in nest.accesses))
    assert longest.partitionable
    assert longest.parallel_trip >= PARTS
    expected = function(x)
    found = torch_pim.compile(Function(function), policy="pim")(x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4 * float(x.abs().max()))


@pytest.mark.parametrize(
    ("function", "shape"),
    [(lambda x: x.sum(), (MIN_SPLIT // 2,)), (lambda x: x.sum(1), (4096, 64)), (lambda x: x.argmax(), (MIN_SPLIT,))],
    ids=["short", "many rows", "two results"],
)
def test_other_reductions_stay_whole(function, shape):
    lowered = lower_model(Function(function), (torch.randn(shape),))
    assert len(lowered.program.functions) == 1
