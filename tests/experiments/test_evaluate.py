"""The evaluation: its sums by hand, and the command on a small model."""

import json
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from torch_pim.compiler_hook.cli.main import main
from torch_pim.experiments.evaluate.evaluation import summarise
from torch_pim.experiments.label import held_out_models
from torch_pim.experiments.label.held_out_models import ModelRun


@dataclass(frozen=True)
class Nest:
    host_ns: float
    device_ns: float
    pim_calls: dict
    calls: int = 4
    refused: str | None = None

    @property
    def host(self):
        return SimpleNamespace(total_ns=self.host_ns)

    @property
    def device(self):
        return SimpleNamespace(total_ns=self.device_ns)


def pair(profile, regrets, nests):
    results = {
        name: SimpleNamespace(plan_regret=plan, nest_regret=nest, speedup=speedup)
        for name, (plan, nest, speedup) in regrets.items()
    }
    return SimpleNamespace(
        profile=profile,
        nests=nests,
        results={"serial": results, "bandwidth": results},
        policies=results,
    )


NESTS = (
    Nest(100e3, 10e3, {"a": 4, "b": 1}),
    Nest(10e3, 100e3, {"a": 0, "b": 3}),
    Nest(100e3, 99e3, {"a": 0, "b": 0}),
    Nest(100e3, 10e3, {"a": 0, "b": 0}, refused="not partitionable"),
    Nest(100e3, 10e3, {"a": 0, "b": 0}, calls=0),
)


def test_sums_by_hand():
    regrets = {"a": (0.1, 0.0, 2.0), "b": (0.5, 0.2, 0.8)}
    others = {"a": (0.21, 0.1, 1.5), "b": (0.0, 0.2, 1.0)}
    comparisons = [SimpleNamespace(pairs=(pair("none", regrets, NESTS), pair("none", others, NESTS[:1])))]
    comparisons[0].pairs += (pair("simulated", others, NESTS),)
    found = {(s.policy, s.setting, s.flush): s for s in summarise(comparisons)}
    assert len(found) == 8
    a = found["a", "static", "serial"]
    assert a.comparisons == 2
    assert a.plan_regret == pytest.approx(math.sqrt(1.1 * 1.21) - 1)
    assert a.worst_plan_regret == 0.21
    assert a.nest_regret == pytest.approx(math.sqrt(1.1) - 1)
    assert a.worst_slowdown == 1.0
    assert found["b", "static", "serial"].worst_slowdown == pytest.approx(1.25)
    # Three decisive free nests: two are faster on PIM, one on the host.
    assert a.decisive_nests == 3
    assert a.coverage == 3 / 6
    assert a.decisive_balanced_accuracy == 1.0
    assert found["b", "static", "serial"].decisive_balanced_accuracy == 0.0
    assert found["a", "profiled", "bandwidth"].plan_regret == pytest.approx(0.21)


def test_accuracy_does_not_exist_where_one_side_always_wins():
    only = [SimpleNamespace(pairs=(pair("none", {"a": (0.0, 0.0, 1.0)}, (replace(NESTS[0]),)),))]
    found = {
        (s.setting, s.flush): s
        for s in summarise([*only, SimpleNamespace(pairs=(pair("simulated", {"a": (0, 0, 1)}, NESTS[:1]),))])
    }
    assert math.isnan(found["static", "serial"].decisive_balanced_accuracy)


@pytest.fixture
def small_runs(monkeypatch):
    runs = (ModelRun("llama-small", (("phase", "decode"), ("context", 40))),)
    monkeypatch.setattr(held_out_models, "EVALUATED_RUNS", runs)


ARGUMENTS = ["evaluate", "--policies", "cost-model,host,pim", "--device", "ndp-hmc-32", "--host", "cpu-8c"]


@pytest.mark.slow
def test_command(small_runs, tmp_path, capsys):
    assert main([*ARGUMENTS, "--cache", str(tmp_path), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    summary = {(line["policy"], line["setting"], line["flush"]): line for line in output["summary"]}
    assert {policy for policy, _, _ in summary} == {"cost-model", "host", "pim", "oracle", "optimum"}
    for setting in ("static", "profiled"):
        for flush in ("serial", "bandwidth"):
            assert summary["optimum", setting, flush]["plan_regret"] == 0.0
            assert summary["oracle", setting, flush]["nest_regret"] == pytest.approx(0.0, abs=1e-12)
            assert summary["host", setting, flush]["worst_slowdown"] == 1.0
            for policy in ("cost-model", "host", "pim"):
                assert summary[policy, setting, flush]["plan_regret"] >= 0.0
    (comparison,) = output["comparisons"]
    assert [p["profile"] for p in comparison["pairs"]] == ["none", "simulated"]
    assert main([*ARGUMENTS, "--cache", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "llama-small decode 40" in text
    assert "all times are modelled" in text


def test_unknown_run(small_runs, capsys):
    assert main([*ARGUMENTS, "--runs", "opt-66b"]) == 2
    assert "the runs are llama-small decode 40" in capsys.readouterr().err
