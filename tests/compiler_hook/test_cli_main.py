from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import torch_pim
from torch_pim.compiler_hook.cli.main import EXPECTED_ERROR, main

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]
CLI = ("-m", "torch_pim.compiler_hook.cli")


@pytest.fixture
def _with_plugin(installed_plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed_plugin)
    monkeypatch.delitem(sys.modules, "torch_pim_example", raising=False)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"torch-pim {torch_pim.__version__}\n"


@pytest.mark.usefixtures("_with_plugin")
def test_help_lists_the_commands_of_all_rooms_and_plugins(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    lines = {line.split()[0]: line for line in output.splitlines() if line.startswith("  ")}
    for name in ("doctor", "label", "train", "evaluate", "compare", "plan", "demo", "example"):
        assert name in lines
    assert lines["example"].endswith("greet from a plug-in")
    assert "unavailable" not in output


def test_no_command_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == EXPECTED_ERROR
    assert "doctor" in capsys.readouterr().out


@pytest.mark.usefixtures("_with_plugin")
def test_help_survives_a_broken_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "broken_pim-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-pim\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[torch_pim.commands]\nbroken = a_module_that_is_nowhere:COMMAND\nmisnamed = torch_pim_example:COMMAND\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert "broken    (unavailable: command 'broken' (a_module_that_is_nowhere:COMMAND of broken-pim 0.1)" in output
    assert "misnamed  (unavailable: command 'misnamed'" in output
    assert "greet from a plug-in" in output
    assert main(["misnamed"]) == EXPECTED_ERROR
    assert "expected an object with name='misnamed'" in capsys.readouterr().err


@pytest.mark.usefixtures("_with_plugin")
def test_a_plugin_command_runs_with_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", "--to", "you"]) == 0
    assert capsys.readouterr().out == "hello you\n"


@pytest.mark.usefixtures("_with_plugin")
def test_help_of_a_command_shows_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["example", "--help"])
    assert stop.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith("usage: torch-pim example ")
    assert "examples:\n  torch-pim example --to you\n" in output
    assert "--debug" in output


def test_an_unknown_command_is_one_line_with_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctr"]) == EXPECTED_ERROR
    assert capsys.readouterr().err == "torch-pim: error: unknown command 'doctr'. Did you mean 'doctor'?\n"


def test_an_unknown_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "--jso"])
    assert stop.value.code == EXPECTED_ERROR
    assert "unrecognized arguments: --jso" in capsys.readouterr().err


@pytest.mark.usefixtures("_with_plugin")
@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("expected", "torch-pim: error: the example device is busy\n"),
        ("file", "torch-pim: error: [Errno 2] No such file or directory: 'no-such-folder/no-such-file'\n"),
    ],
)
def test_an_expected_error_is_one_line_without_a_traceback(
    kind: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["example", "--fail", kind]) == EXPECTED_ERROR
    assert capsys.readouterr().err == line


@pytest.mark.usefixtures("_with_plugin")
@pytest.mark.parametrize("arguments", [["--debug", "example"], ["example", "--debug"]])
def test_debug_keeps_the_traceback(arguments: list[str]) -> None:
    with pytest.raises(torch_pim.compiler_hook.errors.DeviceError):
        main([*arguments, "--fail", "expected"])


@pytest.mark.usefixtures("_with_plugin")
def test_a_bug_is_never_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        main(["example", "--fail", "bug"])


def test_errors_of_other_rooms_are_expected_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torch_pim.compiler_hook.cli.doctor.command import DoctorCommand
    from torch_pim.features.extent import Polynomial
    from torch_pim.features.specs import load_device

    monkeypatch.setattr(DoctorCommand, "run", lambda self, arguments: load_device("no-such-device"))
    assert main(["doctor"]) == EXPECTED_ERROR
    assert capsys.readouterr().err.startswith("torch-pim: error: unknown device 'no-such-device'")
    # A KeyError's own text is the repr of its message.
    monkeypatch.setattr(DoctorCommand, "run", lambda self, arguments: Polynomial.symbol("n").at({}))
    assert main(["doctor"]) == EXPECTED_ERROR
    assert capsys.readouterr().err == "torch-pim: error: no value for symbolic dimension 'n'\n"


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from torch_pim.compiler_hook.cli.doctor.command import DoctorCommand

    def interrupt(self: DoctorCommand, arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(DoctorCommand, "run", interrupt)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "torch-pim: interrupted\n"


def test_help_imports_no_torch_and_no_training_stack(run_python: RunPython) -> None:
    code = (
        "import sys; from torch_pim.compiler_hook.cli.main import main; main(['--help']);"
        "heavy = {'torch', 'torch_mlir', 'numba', 'scipy', 'mlflow', 'xgboost', 'sklearn', 'pandas', 'transformers'};"
        "print('LOADED', sorted(heavy & set(sys.modules)))"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("LOADED []\n")


def test_the_module_form_is_the_command(run_python: RunPython) -> None:
    done = run_python(*CLI, "nonsense")
    assert done.returncode == EXPECTED_ERROR
    assert done.stderr.startswith("torch-pim: error: unknown command 'nonsense'")


def test_a_reader_that_goes_away_is_no_error(run_python: RunPython) -> None:
    code = (
        "import os, subprocess, sys;"
        "p = subprocess.Popen([sys.executable, '-P', '-m', 'torch_pim.compiler_hook.cli', '--help'],"
        " stdout=subprocess.PIPE, stderr=subprocess.PIPE);"
        "p.stdout.close(); error = p.stderr.read().decode(); print(p.wait(), repr(error))"
    )
    assert run_python("-c", code).stdout in ("141 ''\n", "0 ''\n")
