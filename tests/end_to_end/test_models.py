"""Whole models under every policy: compiled without any fallback, equal to eager."""

from __future__ import annotations

import pytest
import torch

import torch_pim
from torch_pim.compiler_hook.target import Target
from torch_pim.experiments.workloads import get_workload

from .comparison import assert_equal_to_eager
from .compiling import POLICIES, compiled, target_for
from .small_models import MODELS

HALF_TOLERANCES = {"f16": 5e-3, "bf16": 4e-2}
"""Error over the largest output: about five spacings of the type (2**-10, 2**-7), for roundings add up over layers."""


@pytest.fixture(scope="module", params=POLICIES)
def target(request: pytest.FixtureRequest) -> Target:
    return target_for(request.param)


@pytest.mark.parametrize("name", MODELS)
def test_model_equals_eager(name: str, target: Target) -> None:
    module, arguments = MODELS[name]()
    with torch.no_grad():
        expected = module(*arguments)
        model, session = compiled(module, target)
        assert_equal_to_eager(model(*arguments), expected)
        # A second call runs what is compiled already.
        assert_equal_to_eager(model(*arguments), expected)
    assert not session.fallbacks
    assert all(plan.policy == target.options.policy for plan in model.plan)
    assert all(len(graph.placed) == 1 for graph in session.graphs)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALF_TOLERANCES)
@pytest.mark.parametrize("name", ["llama-small", "gptj-small"])
def test_language_models_in_half_precision(name: str, dtype: str) -> None:
    module, arguments = get_workload(name).build({"dtype": dtype})
    with torch.no_grad():
        expected = module(*arguments)
        model, session = compiled(module, target_for("pim"))
        assert_equal_to_eager(model(*arguments), expected, HALF_TOLERANCES[dtype])
    assert not session.fallbacks


@pytest.mark.parametrize("options", [None, {"policy": "pim", "device": "ndp-hmc-32"}], ids=["defaults", "options"])
def test_by_the_name_of_the_backend(options: dict[str, str] | None) -> None:
    module, arguments = MODELS["mlp"]()
    with torch.no_grad():
        model = torch.compile(module, backend="torch_pim", options=options)
        assert_equal_to_eager(model(*arguments), module(*arguments))


def test_an_exported_program() -> None:
    module, arguments = MODELS["attention"]()
    program = torch.export.export(module, arguments)
    with torch.no_grad():
        model = torch_pim.compile(program, policy="pim")
        assert_equal_to_eager(model(*arguments), module(*arguments))
    assert model.plan[0].on_pim == model.plan[0].calls
