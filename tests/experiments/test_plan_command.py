"""The command `plan` and what it stands on: models by name, file and factory; text, JSON and errors."""

import json
import re
import sys

import pytest
import torch

import torch_pim
from torch_pim.compiler_hook.cli.main import main
from torch_pim.compiler_hook.errors import FrontendError, OptionError
from torch_pim.compiler_hook.lowering.pipeline import LOWERING_VERSION
from torch_pim.experiments.commands.model_argument import WORKLOAD_NAMES
from torch_pim.experiments.commands.plan import COMMAND
from torch_pim.experiments.lowered_model import describe_inputs, lower_reference
from torch_pim.experiments.workloads import WORKLOADS
from torch_pim.features.machines import assumed_fields
from torch_pim.features.profile import HostProfile
from torch_pim.features.profile_io import write_profiles
from torch_pim.features.specs import load_device, load_host
from torch_pim.models.testing import make_tiny_bundle

TWO_FUNCTIONS = """
func.func @double(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.add ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
func.func @square(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.mul ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
"""
FACTORY = """
import torch
def make():
    return torch.nn.Linear(8, 4), (torch.zeros(2, 8),)
"""


def plan(capsys, *arguments):
    """Exit code, stdout and stderr of one call."""
    code = main(["plan", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def mlir_file(tmp_path):
    path = tmp_path / "two.mlir"
    path.write_text(TWO_FUNCTIONS)
    return path


class TestText:
    def test_shows_counts_decisions_reasons_and_what_it_took(self, capsys):
        code, out, err = plan(capsys, "gemv", "--policy", "cost-model", "--set", "rows=1024")
        assert code == 0
        assert "plan of gemv (rows 1024, columns 4096, f32): host cpu-8c, device ndp-hmc-64, policy cost-model" in out
        assert "1 nest calls (1 compute, 0 copies, 0 fills), 1 unique nests" in out
        # Two operations per multiply-add.
        assert f"contractions: {2 * 1024 * 4096 / 1e9:.3f} GFLOP" in out
        assert "memory-bound" in out
        assert re.search(r"planned in \d+\.\d s, peak memory \d+ MB", err)

    def test_all_prints_every_group(self, capsys, monkeypatch):
        monkeypatch.setattr("torch_pim.experiments.commands.plan.GROUPS", 3)
        _, some, _ = plan(capsys, "llama-small", "--policy", "host")
        _, everything, _ = plan(capsys, "llama-small", "--policy", "host", "--all")
        assert re.search(r"\.\.\. \d+ more groups", some)
        assert "more groups" not in everything
        assert len(everything.splitlines()) > len(some.splitlines())

    def test_a_missing_model_is_said_once_and_named(self, capsys, tmp_path):
        code, _, err = plan(capsys, "add", "--set", "rows=64", "--bundle", str(tmp_path / "nowhere"))
        assert code == 0
        notes = [line for line in err.splitlines() if line.startswith("note: ")]
        assert len(notes) == 1
        assert "policy 'learned' decides by the cost model" in notes[0]
        assert "ModelMissing" in notes[0]

    def test_the_model_of_a_bundle_decides(self, capsys, tmp_path):
        bundle = make_tiny_bundle(tmp_path / "tiny")
        code, out, err = plan(capsys, "gemv", "--bundle", str(bundle), "--on-model-error", "error")
        assert code == 0
        assert "score 0.95 >= 0.50" in out
        assert "note:" not in err


class TestJson:
    def test_holds_every_call_and_everything_it_was_made_from(self, capsys, tmp_path):
        bundle = make_tiny_bundle(tmp_path / "tiny")
        code, out, _ = plan(capsys, "llama-small", "--phase", "decode", "--bundle", str(bundle), "--json")
        assert code == 0
        found = json.loads(out)
        assert set(found) == {
            "model", "plan", "host", "device", "profile", "profiled_nests", "bundle", "versions", "notes", "process",
        }  # fmt: skip
        assert found["model"]["options"] == {
            "phase": "decode", "sequence": 12, "context": 12, "layers": 2, "dtype": "f32", "batch": 1,
        }  # fmt: skip
        made = found["plan"]
        assert len(made["entries"]) == made["calls"] > made["unique_nests"]
        assert [entry["call"] for entry in made["entries"]] == list(range(made["calls"]))
        assert all(entry["reason"] and entry["side"] in ("host", "pim") for entry in made["entries"])
        assert sum(made["stages"].values()) == made["calls"]
        assert sum(entry["side"] == "pim" for entry in made["entries"]) == made["on_pim"]
        assert re.fullmatch(r"[0-9a-f]{64}", made["fingerprint"])
        # Two layers of four 64x64 and three 64x176 matrices, the head of 512x64; attention to 13 keys of 64.
        assert made["contraction_flops"] == 2 * (2 * (4 * 64 * 64 + 3 * 64 * 176 + 2 * 13 * 64) + 512 * 64)
        assert found["versions"]["torch-pim"] == torch_pim.__version__
        assert found["versions"]["torch"] == torch.__version__
        assert found["versions"]["lowering"] == str(LOWERING_VERSION)
        assert {"torch-mlir", "features", "emulator", "transformers"} <= set(found["versions"])
        assert found["bundle"]["usable"]
        assert (found["bundle"]["name"], found["bundle"]["version"]) == ("tiny", "1.0.0")
        host, device = load_host("cpu-8c"), load_device("ndp-hmc-64")
        assert (found["host"]["identity"], found["device"]["identity"]) == (host.identity, device.identity)
        assert found["device"]["assumed"] == list(assumed_fields(device))
        assert found["device"]["cores"] == 64
        assert found["profile"] is None
        assert found["notes"] == []
        assert found["process"]["wall_time_s"] > 0

    def test_is_the_same_every_time(self, capsys):
        arguments = ("mlp", "--set", "hidden=64", "--policy", "random", "--seed", "3", "--json")
        texts = []
        for _ in range(2):
            found = json.loads(plan(capsys, *arguments)[1])
            del found["process"]
            texts.append(json.dumps(found))
        assert texts[0] == texts[1]


class TestModels:
    def test_help_lists_every_workload(self):
        assert WORKLOAD_NAMES == tuple(WORKLOADS)
        assert all(name in COMMAND.description for name in WORKLOADS)

    def test_exported_program(self, capsys, tmp_path):
        path = tmp_path / "linear.pt2"
        torch.export.save(torch.export.export(torch.nn.Linear(8, 4), (torch.zeros(2, 8),)), path)
        code, out, _ = plan(capsys, str(path), "--policy", "analytic")
        assert code == 0
        assert "plan of linear: host" in out
        assert f"weights read: {4 * (8 * 4 + 4) / 1e6:.1f} MB" in out

    def test_factory_in_the_working_directory(self, capsys, tmp_path, monkeypatch):
        (tmp_path / "planned_factory.py").write_text(FACTORY)
        monkeypatch.chdir(tmp_path)
        monkeypatch.delitem(sys.modules, "planned_factory", raising=False)
        code, out, _ = plan(capsys, "planned_factory:make", "--policy", "analytic")
        assert code == 0
        assert "plan of planned_factory:make" in out

    def test_function_of_an_mlir_file(self, capsys, mlir_file):
        code, out, _ = plan(capsys, str(mlir_file), "--set", "function=square", "--policy", "analytic", "--json")
        assert code == 0
        found = json.loads(out)
        assert found["model"]["title"] == "two (square)"
        assert found["model"]["inputs"] == [{"type": "f32[4,8]", "count": 1}]
        assert found["plan"]["calls"] == 1

    def test_real_language_model_without_its_weights(self):
        # 6.6 G parameters of 4 bytes are 26 GB; the lowering must not need them.
        model = lower_reference("llama-7b", {"phase": "decode", "layers": "1"})
        assert model.title == "llama-7b (decode, context 2048, layers 1, f32, batch 1)"
        assert describe_inputs(model) == "i64[1,1] x 2, f32[1,1,1,2049], f32[1,32,2048,128] x 2"
        assert model.element_types == ("f32", "i64")

    def test_a_model_without_inputs(self):
        class Constant(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.ones(4))

            def forward(self):
                return self.w * 2

        sys.modules["constant_model"] = type(sys)("constant_model")
        sys.modules["constant_model"].make = lambda: (Constant(), ())
        try:
            assert describe_inputs(lower_reference("constant_model:make")) == "nothing"
        finally:
            del sys.modules["constant_model"]


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("mlp", "--sequence", "4"), "'mlp' has no option 'sequence': it takes batch, hidden, layers, dtype"),
            (("mlp", "--set", "hiden=4"), "did you mean 'hidden'"),
            (("mlp", "--layers", "none"), "'layers' is 'none', expected an integer"),
            (("llama-small", "--phase", "decode", "--sequence", "4"), "'sequence' says nothing about phase 'decode'"),
            (("llama-small", "--context", "4"), "'context' says nothing about phase 'prefill'"),
            (("mlp", "--layers", "1", "--set", "layers=2"), "'layers' of model 'mlp' is given twice"),
            (("lama-7b",), "did you mean 'llama-7b'"),
            (("gemv", "--policy", "analytical"), "unknown policy 'analytical'. Did you mean 'analytic'"),
            (("gemv", "--device", "ndp-hmc-63"), "ndp-hmc-64"),
            (("gemv", "--profile", "missing.jsonl"), "missing.jsonl"),
            (("nowhere.mlir",), "nowhere.mlir: no such file"),
            (("nowhere.pt2",), "no file 'nowhere.pt2'"),
            (("no_such_module_anywhere:make",), "cannot import 'no_such_module_anywhere'"),
        ],
    )
    def test_name_the_thing_and_the_mend(self, capsys, arguments, message):
        code, out, err = plan(capsys, *arguments)
        assert code == 2
        assert out == ""
        assert message in err
        assert len([line for line in err.splitlines() if line.startswith("torch-pim: error:")]) == 1

    def test_a_bundle_that_must_be_usable(self, capsys, tmp_path):
        code, _, err = plan(capsys, "add", "--bundle", str(tmp_path / "none"), "--on-model-error", "error")
        assert code == 2
        assert "train one with torch-pim train" in err

    def test_options_without_a_value_are_usage_errors(self, capsys):
        with pytest.raises(SystemExit) as stop:
            main(["plan", "mlp", "--set", "hidden"])
        assert stop.value.code == 2
        assert "expected NAME=VALUE" in capsys.readouterr().err

    def test_functions_of_an_mlir_file(self, mlir_file):
        with pytest.raises(OptionError, match="2 functions: choose one of double, square"):
            lower_reference(str(mlir_file))
        with pytest.raises(OptionError, match=r"no public function 'sqare'\. Did you mean 'square'"):
            lower_reference(str(mlir_file), {"function": "sqare"})
        with pytest.raises(OptionError, match="takes only 'function'"):
            lower_reference(str(mlir_file), {"batch": "4"})

    def test_text_that_is_no_mlir(self, tmp_path):
        path = tmp_path / "bad.mlir"
        path.write_text("func.func @f(")
        with pytest.raises(FrontendError, match=r"bad\.mlir: not valid MLIR"):
            lower_reference(str(path))

    def test_dynamic_sizes(self, tmp_path):
        path = tmp_path / "dynamic.mlir"
        path.write_text(TWO_FUNCTIONS.split("func.func @square")[0].replace("4x8", "?x8").replace(
            "tensor.empty()", "tensor.empty(%n)").replace("%e =", "%c = arith.constant 0 : index\n"
            "  %n = tensor.dim %x, %c : tensor<?x8xf32>\n  %e ="))  # fmt: skip
        with pytest.raises(OptionError, match=r"of dynamic size \(f32\[\?,8\]\)"):
            lower_reference(str(path))


class TestProfiles:
    def profile(self, path, code_hash, host_id):
        write_profiles(path, [HostProfile(code_hash, host_id, "simulated", wall_time_ns=5e6)])
        return path

    def test_of_this_host_and_model_are_used(self, capsys, tmp_path):
        (nest,) = lower_reference("add", {"rows": "64"}).lowered.concrete_nests()
        path = self.profile(tmp_path / "p.jsonl", nest.function.code_hash, load_host("cpu-8c").identity)
        arguments = ("add", "--set", "rows=64", "--policy", "cost-model", "--json")
        without = json.loads(plan(capsys, *arguments)[1])
        used = json.loads(plan(capsys, *arguments, "--profile", str(path))[1])
        assert (without["profiled_nests"], used["profiled_nests"]) == (0, 1)
        assert used["profile"] == str(path)
        assert used["plan"]["fingerprint"] != without["plan"]["fingerprint"]

    def test_that_fit_nothing_are_an_error(self, capsys, tmp_path):
        other_host = self.profile(tmp_path / "host.jsonl", "0", "another@123")
        other_nest = self.profile(tmp_path / "nest.jsonl", "0", load_host("cpu-8c").identity)
        assert "only of another@123; make one with" in plan(capsys, "add", "--profile", str(other_host))[2]
        assert "is of a nest of this model" in plan(capsys, "add", "--profile", str(other_nest))[2]
