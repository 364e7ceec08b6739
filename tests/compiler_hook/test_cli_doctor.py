from __future__ import annotations

import errno
import json
import os
import platform
import re
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import pytest

from torch_pim.compiler_hook.cli.doctor import counters, installation, versions
from torch_pim.compiler_hook.cli.doctor.command import as_json, as_table
from torch_pim.compiler_hook.cli.doctor.counters import check_counters, describe, open_counter
from torch_pim.compiler_hook.cli.doctor.finding import Finding
from torch_pim.compiler_hook.cli.doctor.processor import check_processor
from torch_pim.compiler_hook.cli.doctor.versions import (
    EXTRAS,
    TESTED,
    TESTED_PYTHON,
    check_distribution,
    check_versions,
)
from torch_pim.compiler_hook.cli.main import main

ROOT = Path(__file__).parents[2]


def by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_the_whole_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert all(set(item) == {"section", "name", "state", "value", "advice"} for item in report)
    found = {(item["section"], item["name"]): item for item in report}
    assert found["versions", "torch"]["value"].startswith(version("torch"))
    assert found["device plug-ins", "ndp-hmc-64"]["value"].startswith("torch-pim ")
    assert found["command plug-ins", "doctor"]["state"] == "ok"
    assert found["installation", "default model"]["state"] == "ok"
    assert found["installation", "cache folder"]["value"] == f"{os.environ['TORCH_PIM_CACHE_DIR']} (writable)"
    assert not [item for item in report if item["state"] != "ok" and not item["advice"]]
    assert code == int(any(item["state"] == "problem" for item in report))


def test_table_groups_by_section_and_puts_advice_below() -> None:
    findings = [
        Finding("versions", "torch", "ok", "2.13.0"),
        Finding("versions", "torch-mlir", "problem", "missing", "pip install torch-mlir"),
        Finding("processor", "cores", "note", "unknown"),
    ]
    assert as_table(findings).splitlines() == [
        "versions",
        "  ok      torch       2.13.0",
        "  PROBLEM torch-mlir  missing",
        "                      -> pip install torch-mlir",
        "",
        "processor",
        "  note    cores       unknown",
        "",
        "1 problem(s) stop models from compiling.",
    ]
    assert as_table(findings[:1]).endswith("Models can be compiled.")
    assert json.loads(as_json(findings))[1]["advice"] == "pip install torch-mlir"


def test_tested_versions_are_the_pinned_ones() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert {name: pins[name] for name in TESTED} == TESTED
    assert set(EXTRAS) <= set(TESTED)


def test_python_version() -> None:
    found = by_name(check_versions())["python"]
    assert found.value.startswith(platform.python_version())
    assert (found.state == "ok") == platform.python_version().startswith(TESTED_PYTHON + ".")


@pytest.mark.parametrize(
    ("installed", "state", "value"),
    [
        ("2.13.0", "ok", "2.13.0"),
        ("2.13.0+cpu", "ok", "2.13.0+cpu"),
        ("2.14.1", "note", "2.14.1 (tested with 2.13.0)"),
    ],
)
def test_another_version_than_the_tested_one_is_noted(
    installed: str, state: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "version", lambda name: installed)
    found = check_distribution("torch", "2.13.0")
    assert (found.state, found.value) == (state, value)
    assert (found.advice is None) == (state == "ok")


def test_a_missing_distribution_says_how_to_get_it() -> None:
    needed = check_distribution("nowhere-to-be-found", "1.0")
    assert (needed.state, needed.advice) == ("problem", "pip install 'nowhere-to-be-found==1.0'")


def test_a_missing_extra_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "EXTRAS", {"nowhere-to-be-found": "train"})
    optional = check_distribution("nowhere-to-be-found", "1.0")
    assert (optional.state, optional.advice) == ("note", "pip install 'torch-pim[train]'")


def test_a_compiler_that_does_not_import_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_mlir.ir", None)
    found = check_distribution("torch-mlir", TESTED["torch-mlir"])
    assert found.state == "problem"
    assert "torch_mlir.ir does not import" in found.value


def write_cache(root: Path, index: int, **values: str) -> None:
    entry = root / "sys" / "devices" / "system" / "cpu" / "cpu0" / "cache" / f"index{index}"
    entry.mkdir(parents=True)
    for name, value in values.items():
        (entry / name).write_text(value + "\n")


def test_processor_from_the_kernels_files(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("vendor_id : Maker\nmodel name\t: Example 9000: the fast one\n\n")
    write_cache(tmp_path, 0, level="1", type="Data", size="48K")
    write_cache(tmp_path, 1, level="1", type="Instruction", size="32K")
    write_cache(tmp_path, 2, level="2", type="Unified", size="2048K")
    write_cache(tmp_path, 3, level="3", type="Unified", size="33M")
    found = {name: finding.value for name, finding in by_name(check_processor(tmp_path)).items()}
    assert found["model"].startswith("Example 9000: the fast one")
    assert found["host_id"].startswith("Maker")
    assert found["L1 data cache"] == "48 KiB"
    assert found["L2 cache"] == "2 MiB"
    assert found["L3 cache"] == "33 MiB"
    assert set(found) == {"model", "host_id", "cores", "L1 data cache", "L2 cache", "L3 cache"}


def test_processor_without_the_kernels_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf_names", {})
    found = by_name(check_processor(tmp_path))
    assert found["model"].value == platform.machine()
    assert found["caches"].state == "note"


def test_every_counter_is_reported_with_level_and_mend() -> None:
    found = by_name(check_counters())
    assert sorted(", ".join(found).split(", ")) == ["cache misses", "cycles", "instructions"]
    for finding in found.values():
        assert finding.state == "ok" or ("perf_event_paranoid = " in finding.value and finding.advice)


def test_counters_elsewhere_than_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    (found,) = check_counters()
    assert found.state == "note"
    assert "darwin" in found.value


def test_the_kernel_reads_the_event_out_of_our_structure() -> None:
    # No hardware event has this number: a structure that is read as meant gets the event refused.
    number = counters._SYSTEM_CALL[platform.machine()]
    refusals = (errno.EINVAL, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
    assert open_counter(number, 10_000) in refusals
    assert open_counter(100_000, 0) == errno.ENOSYS


def test_the_structure_has_the_size_of_its_first_version() -> None:
    # PERF_ATTR_SIZE_VER0 in linux/perf_event.h.
    assert counters._ATTRIBUTE.size == 64


@pytest.mark.parametrize(
    ("error", "value", "advice"),
    [
        (errno.ENOENT, "in many virtual machines (ENOENT, perf_event_paranoid = 4)", "profiles are then simulated"),
        (errno.EOPNOTSUPP, "in many virtual machines (E", "profiles are then simulated"),
        (errno.EACCES, "not allowed (EACCES, perf_event_paranoid = 4)", "CAP_PERFMON"),
        (errno.EPERM, "not allowed (EPERM", "seccomp"),
        (errno.ENOSYS, "without perf events (ENOSYS", "simulated"),
        (errno.EBUSY, "another tool holds the counters (EBUSY", "stop the other tool"),
        (errno.EXDEV, "(EXDEV", "simulated"),
    ],
)
def test_each_refusal_has_a_meaning_and_a_mend(error: int, value: str, advice: str) -> None:
    found = describe("cycles", error, "4")
    assert found.state == "note"
    assert value in found.value
    assert advice in (found.advice or "")


def test_an_open_counter_is_ok() -> None:
    assert describe("cycles", 0, "2") == Finding("hardware counters", "cycles", "ok", "can be read")


def test_an_unusable_cache_folder_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCH_PIM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    found = by_name(installation.check_installation())["cache folder"]
    assert found.state == "note"
    assert "Not a directory" in found.value
    assert "TORCH_PIM_CACHE_DIR" in (found.advice or "")


def test_a_missing_bundle_names_the_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch_pim.models.artifacts.default_bundle_path", lambda: tmp_path / "none")
    found = by_name(installation.check_installation())["default model"]
    assert found.state == "note"
    assert "cannot be used" in found.value
    assert "cost-model" in (found.advice or "")


def test_a_plugin_that_cannot_be_loaded_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "broken_pim-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-pim\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[torch_pim.devices]\nbroken = nowhere_pim:Device\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = by_name(installation.check_plugins())["broken"]
    assert (found.section, found.state) == ("device plug-ins", "note")
    assert "nowhere_pim:Device of broken-pim 0.1" in (found.advice or "")


def test_a_bare_checkout_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "installed_version", lambda: None)
    found = by_name(installation.check_installation())["torch-pim"]
    assert (found.state, found.advice) == ("problem", "pip install -e .")
