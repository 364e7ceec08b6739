"""The demo on small models: what it prints, its JSON, the execution, and what happens when parts are missing."""

import json

import pytest

from torch_pim.compiler_hook.cli.main import main
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.experiments.commands.compare import POLICIES
from torch_pim.experiments.demo import cases, execution, run
from torch_pim.experiments.demo.cases import CASES, DemoCase
from torch_pim.experiments.demo.render import _each
from torch_pim.experiments.workloads import WORKLOADS
from torch_pim.experiments.workloads.language_models import OptionalDependencyError
from torch_pim.experiments.workloads.options import apply_options

SMALL_CASES = (DemoCase("small gemv", "gemv", {"rows": 256, "columns": 256}), DemoCase("MLP", "mlp", {"hidden": 128}))


@pytest.fixture
def _small(monkeypatch, tmp_path):
    """Two small cases, and no learned model, whichever is shipped."""
    monkeypatch.setattr(cases, "CASES", SMALL_CASES)
    for user in ("models.policies.model_loading", "experiments.provenance"):
        monkeypatch.setattr(f"torch_pim.{user}.default_bundle_path", lambda: tmp_path / "nowhere")


@pytest.mark.usefixtures("_small")
def test_tells_a_person_what_would_run_where_and_what_it_gains(capsys):
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "host cpu-8c, device ndp-hmc-64, f32, batch 1, emulator" in out
    assert "none is measured" in out
    assert "learned model: none (ModelMissing: " in out
    assert "learned and learned+residency decide by the cost model instead" in out
    assert "small gemv: 1 nests and 0 copies, 1 of them unique" in out
    for name in (*POLICIES, "oracle", "optimum"):
        assert f"  {name} " in out
    assert out.count("flush serial") == out.count("flush bandwidth") == 1
    assert 'executed by torch.compile(backend="torch_pim"), policy pim: ' in out
    assert "small gemv (1 of 2)" in err
    assert "note:" not in err


def test_the_optimum_of_each_flush_model_is_told_apart():
    assert _each([5, 5]) == "5"
    assert _each([0, 1]) == "0 / 1"


@pytest.mark.usefixtures("_small")
def test_json(capsys):
    assert main(["demo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [case["label"] for case in found["cases"]] == ["small gemv", "MLP"]
    for case in found["cases"]:
        (pair,) = case["comparison"]["pairs"]
        assert pair["profile"] == "none"
        assert set(pair["policies"]) == {*POLICIES, "oracle", "optimum"}
        assert case["left_out"] is None
    assert found["bundle"]["usable"] is False
    executed = found["execution"]
    assert 0 < executed["calls_on_pim"] <= executed["calls"]
    assert executed["largest_error"] < 1e-5 < 0.01 < executed["largest_output"]


@pytest.mark.usefixtures("_small")
def test_goes_on_without_the_package_of_the_language_models(capsys, monkeypatch):
    def missing(*arguments, **keywords):
        raise OptionalDependencyError("the language-model workloads need the package 'transformers'")

    monkeypatch.setattr(run, "lower_reference", missing)
    monkeypatch.setattr(execution, "get_workload", missing)
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "MLP: left out, because the language-model workloads need the package 'transformers'" in out
    assert "no case could be compared" in out
    assert "no model was run, because" in out


def test_execution_of_another_model_on_another_device():
    result = execution.run_small_model(CompileOptions(device="ndp-hmc-32"), workload="gptj-small", seed=1)
    assert result.device == "ndp-hmc-32"
    assert 0 < result.calls_on_pim <= result.calls
    assert result.largest_error < 1e-5 < result.largest_output


def test_cases_are_the_models_at_their_real_shapes():
    assert cases.CASES is CASES
    chosen = {
        case.label: apply_options(case.workload, WORKLOADS[case.workload].defaults, case.options) for case in CASES
    }
    assert len(chosen) == len(CASES)
    assert all(getattr(options, "batch", 1) == 1 and options.dtype == "f32" for options in chosen.values())
    assert chosen["LLaMA-7B, decode 2048"].layers == 32
    assert chosen["LLaMA-7B, decode 2048"].context == 2048
    assert chosen["GPT-J-6B, prefill 128"].layers == 28
    assert chosen["GPT-J-6B, prefill 128"].sequence == 128
    assert (chosen["gemv 4096x4096, matrix from host"].rows, chosen["MLP 3 x 4096"].hidden) == (4096, 4096)
