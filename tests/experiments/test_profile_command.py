"""The command `profile`: one profile per unique nest, whole files, and which host they are of."""

import json
import math

import pytest

from torch_pim.compiler_hook.cli.main import main
from torch_pim.compiler_hook.profilers.cpu_identity import read_cpu_identity
from torch_pim.experiments.lowered_model import lower_reference
from torch_pim.experiments.profiling import profile_nests
from torch_pim.features.profile import HostProfile
from torch_pim.features.profile_io import digest, read_profiles
from torch_pim.features.specs import load_host

MODEL = ("llama-small", "--phase", "decode")


def profile(capsys, *arguments):
    """Exit code, stdout and stderr of one call."""
    code = main(["profile", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def nests():
    return lower_reference("llama-small", {"phase": "decode"}).lowered.concrete_nests()


def test_simulated_profiles_are_of_the_preset(capsys, tmp_path, nests):
    path = tmp_path / "simulated.jsonl"
    arguments = (*MODEL, "--origin", "simulated", "--host", "cpu-16c", "--json", "-o", str(path))
    code, out, err = profile(capsys, *arguments)
    assert code == 0
    profiles = read_profiles(path)
    assert [p.code_hash for p in profiles] == [nest.function.code_hash for nest in nests]
    assert {p.host_id for p in profiles} == {load_host("cpu-16c").identity}
    assert all(p.origin == "simulated" and not p.warm and p.instructions > 0 for p in profiles)
    summary = json.loads(out)
    assert summary["profiles"] == len(nests)
    assert summary["digest"] == digest(profiles)
    assert summary["host_id"] == load_host("cpu-16c").identity
    assert f"profiled {len(nests)} of {len(nests)} nests" in err
    again = tmp_path / "again.jsonl"
    assert profile(capsys, *arguments[:-1], str(again))[0] == 0
    assert again.read_bytes() == path.read_bytes()
    assert profile(capsys, *arguments[:-1], str(again), "--seed", "1")[0] == 0
    assert again.read_bytes() != path.read_bytes()


@pytest.mark.parametrize("caches", ["--warm", "--cold"])
def test_wall_profiles_are_of_this_machine(capsys, tmp_path, caches):
    path = tmp_path / "wall.jsonl"
    code, out, _ = profile(capsys, "add", "--set", "rows=64", "--origin", "wall", caches, "-o", str(path))
    assert code == 0
    (measured,) = read_profiles(path)
    assert measured.host_id == read_cpu_identity().host_id
    assert measured.origin == "wall"
    assert measured.warm == (caches == "--warm")
    assert measured.wall_time_ns > 0
    assert math.isnan(measured.instructions)
    assert str(path) in out
    assert measured.host_id in out


def test_profiles_of_this_command_reach_a_plan(capsys, tmp_path):
    path = tmp_path / "p.jsonl"
    assert profile(capsys, "gemv", "--set", "rows=64", "--origin", "simulated", "-o", str(path))[0] == 0
    arguments = ["plan", "gemv", "--set", "rows=64", "--policy", "cost-model", "--profile", str(path), "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["profiled_nests"] == 1


def test_batches_keep_order_and_tell_progress(nests):
    class Numbering:
        calls = 0

        def profile(self, batch):
            self.calls += 1
            return tuple(HostProfile(nest.function.code_hash, "h", "wall") for nest in batch)

    numbering, seen = Numbering(), []
    profiles = profile_nests(nests, numbering, lambda done, total: seen.append((done, total)))
    assert [p.code_hash for p in profiles] == [nest.function.code_hash for nest in nests]
    assert numbering.calls == math.ceil(len(nests) / 8)
    assert seen == [*((start, len(nests)) for start in range(0, len(nests), 8)), (len(nests), len(nests))]


def test_an_interrupted_run_leaves_the_old_file(capsys, tmp_path, monkeypatch):
    path = tmp_path / "p.jsonl"
    path.write_text("old")

    def fail(nests, profiler, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr("torch_pim.experiments.profiling.profile_nests", fail)
    code, _, _ = profile(capsys, "add", "--set", "rows=64", "--origin", "simulated", "-o", str(path))
    assert code == 130
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--origin", "wall", "--host", "cpu-8c"), "--host is for simulated profiles"),
        (("--origin", "simulated", "--warm"), "--warm is for wall time"),
        (("--origin", "simulated", "--host", "cpu-9c"), "cpu-9c"),
        (("--origin", "simulated", "--seed", "-1"), "'seed': expected an integer of at least 0"),
        (("--origin", "simulated", "--layers", "2"), "'add' has no option 'layers': it takes rows, columns, dtype"),
    ],
)
def test_bad_options(capsys, tmp_path, arguments, message):
    path = tmp_path / "p.jsonl"
    code, out, err = profile(capsys, "add", *arguments, "-o", str(path))
    assert (code, out) == (2, "")
    assert message in err
    assert not path.exists()


def test_a_folder_that_is_not_there(capsys, tmp_path):
    code, _, err = profile(capsys, "add", "--origin", "simulated", "-o", str(tmp_path / "no" / "p.jsonl"))
    assert code == 2
    assert "its folder does not exist" in err


def test_profiles_are_simulated_unless_asked_otherwise(capsys, tmp_path):
    assert main(["profile", "add", "--set", "rows=64", "-o", str(tmp_path / "p.jsonl")]) == 0
    assert "1 simulated profiles of add" in capsys.readouterr().out


def test_a_folder_is_no_output(capsys, tmp_path):
    assert main(["profile", "add", "-o", str(tmp_path)]) == 2
    assert "is a folder: expected the name of a file" in capsys.readouterr().err
