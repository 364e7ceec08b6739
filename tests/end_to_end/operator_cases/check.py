"""One case of the operator table, compiled and compared."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torch_pim.compiler_hook.target import Target

from ..comparison import assert_equal_to_eager
from ..compiling import compiled
from .case import Case


class Call(nn.Module):
    """The function of a case as a module, for torch.export."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.function = case.function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def check(case: Case, target: Target) -> None:
    """The case calls the overload that it names, runs as nests alone and equals eager."""
    with torch.no_grad():
        expected = case.function(*case.inputs)
        exported = torch.export.export(Call(case), case.inputs, strict=False)
        model, session = compiled(case.function, target)
        actual = model(*case.inputs)
    assert case.overload in {str(node.target) for node in exported.graph.nodes}
    assert_equal_to_eager(actual, expected)
    assert session.graphs
    assert not session.fallbacks
    assert session.compiled_share == 1.0
