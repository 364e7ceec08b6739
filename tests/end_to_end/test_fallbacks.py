"""Operators that no nest can be made of: the model still runs, says so once, and keeps the rest compiled."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from torch_pim.compiler_hook.backend import compile_dynamo_graph
from torch_pim.compiler_hook.graph_compiler import FallbackWarning, Session

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for


class RunningMaximum(nn.Module):
    """Two linear layers with an operator between them that has no lowering."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Linear(4, 6)
        self.after = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(torch.cummax(torch.relu(self.before(x)), 1)[0]).softmax(-1)


def test_one_operator_in_eager_and_the_rest_compiled() -> None:
    module, x = RunningMaximum().eval(), torch.randn(2, 4)
    model, session = compiled(module, target_for("pim"))
    with torch.no_grad():
        expected = module(x)
        with pytest.warns(FallbackWarning, match=r"runs in PyTorch eager: aten\.cummax\.default \(") as caught:
            assert_equal_to_eager(model(x), expected)
        assert len(caught) == 1
        # The second call is compiled already: no warning.
        assert_equal_to_eager(model(x), expected)
    assert len(session.graphs) == 2
    (fallback,) = session.fallbacks
    assert [entry.operator for entry in fallback.operators] == ["aten.cummax.default"]
    assert fallback.eager_nodes == 1
    assert session.compiled_share == pytest.approx(1.0 - 1.0 / fallback.total_nodes)
    report = model.report()
    assert f"compiled operators: {100.0 * session.compiled_share:.1f} %" in report
    assert "in PyTorch eager: aten.cummax.default" in report
    assert "softmax" in report or "amax.default" in report


def test_gradients_pass_through_an_operator_in_eager() -> None:
    module, x = RunningMaximum(), torch.randn(2, 4)
    expected = torch.autograd.grad(module(x)[:, 0].sum(), list(module.parameters()))
    model, _ = compiled(module, target_for("pim"))
    with pytest.warns(FallbackWarning):
        actual = torch.autograd.grad(model(x)[:, 0].sum(), list(module.parameters()))
    assert_equal_to_eager(actual, expected)


def test_several_operators_are_named_in_one_warning() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.special.i0(x) + torch.cummin(x.exp(), 0)[0] + torch.special.i0(x * 2)

    x = torch.randn(3, 2)
    model, session = compiled(function, target_for("host"))
    with pytest.warns(FallbackWarning) as caught:
        assert_equal_to_eager(model(x), function(x))
    (warning,) = caught
    assert "aten.i0.default" in str(warning.message)
    assert "aten.cummin.default" in str(warning.message)
    assert "aten.exp" not in str(warning.message)
    assert session.fallbacks[0].eager_nodes == 3


def test_a_model_of_one_such_operator_has_no_plan_but_a_report() -> None:
    x = torch.randn(3)
    model, _ = compiled(torch.special.i0, target_for("pim"))
    assert model.report() == "nothing compiled yet: call the model once"
    with pytest.warns(FallbackWarning):
        assert_equal_to_eager(model(x), torch.special.i0(x))
    assert model.plan == ()
    assert "compiled operators: 0.0 %" in model.report()


def test_dropout_draws_from_pytorchs_generator() -> None:
    module, x = nn.Sequential(nn.Linear(4, 40), nn.Dropout(0.5), nn.Linear(40, 2)).train(), torch.randn(3, 4)
    model, session = compiled(module, target_for("pim"))
    torch.manual_seed(1)
    expected = module(x)
    torch.manual_seed(1)
    with pytest.warns(FallbackWarning, match="random numbers") as caught:
        actual = model(x)
    assert_equal_to_eager(actual, expected)
    assert len(caught) == 1
    assert session.compiled_share < 1.0
    # In inference dropout is nothing.
    module.eval()
    with torch.no_grad():
        assert_equal_to_eager(model(x), module(x))


def test_sizes_that_depend_on_data() -> None:
    """What follows the operator is compiled for any size."""

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        positive = (x * 2).masked_select(x > 0)
        return positive * 3 + 1, positive.sum()

    session = Session(target_for("pim"), [], [])
    model = torch.compile(function, backend=lambda g, inputs: compile_dynamo_graph(g, inputs, session), fullgraph=True)
    x = torch.randn(4, 5)
    with pytest.warns(FallbackWarning, match="masked_select"):
        assert_equal_to_eager(model(x), function(x))
    for shift in (1.0, -1.0, -9.0):
        assert_equal_to_eager(model(x + shift), function(x + shift))
    assert [entry.operator for entry in session.fallbacks[0].operators] == ["aten.masked_select.default"]


def test_a_branch_on_data_breaks_the_graph_in_two() -> None:
    def function(x: Tensor) -> Tensor:
        y = x.exp()
        return y * 2 if y.sum() > 4.0 else y - 1

    model, session = compiled(function, target_for("pim"))
    for x in (torch.full((3,), -5.0), torch.full((3,), 5.0)):
        assert_equal_to_eager(model(x), function(x))
    assert len(session.graphs) == 3
    assert not session.fallbacks
