"""What users get wrong: each is a clear error that names the thing and the mend, or a named fallback."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torch_pim
from torch_pim.compiler_hook.compiled_graph import CompiledGraph
from torch_pim.compiler_hook.errors import OptionError, ShapeError
from torch_pim.compiler_hook.lowered import lower_model
from torch_pim.features.profile import HostProfile
from torch_pim.features.profile_io import ProfileError, write_profiles
from torch_pim.features.schema import Schema
from torch_pim.features.specs import PRESETS, SpecError, load_host
from torch_pim.models.errors import ChecksumMismatch, ModelMissing, ModelWarning, SchemaMismatch
from torch_pim.models.testing import make_tiny_bundle

from .comparison import assert_equal_to_eager
from .compiling import target_for

MODEL = nn.Linear(4, 3).eval().requires_grad_(False)
X = torch.randn(2, 4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"devise": "ndp-hmc-64"}, OptionError, r"unknown option 'devise'\. Did you mean 'device'\?"),
        ({"device": "ndp-hmc-46"}, SpecError, r"unknown device 'ndp-hmc-46'; did you mean 'ndp-hmc-64'\?"),
        ({"host": "cpu-8cc"}, SpecError, r"unknown host 'cpu-8cc'; did you mean 'cpu-8c'\?"),
        ({"policy": "lerned"}, OptionError, r"unknown policy 'lerned'\. Did you mean 'learned'\?"),
        ({"device": "absent.toml"}, SpecError, r"cannot read .*absent\.toml"),
        ({"threads": 0}, OptionError, r"'threads': expected an integer of at least 1.* got 0"),
        ({"seed": True}, OptionError, r"'seed': expected an integer"),
        ({"on_model_error": "ignore"}, OptionError, r"expected 'fallback' or 'error', got 'ignore'"),
        ({"profile": "absent.jsonl"}, ProfileError, r"cannot read the profiles in absent\.jsonl"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        torch_pim.compile(MODEL, **options)
    # By the name of the backend the error comes at the first call, through Dynamo.
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        torch.compile(MODEL, backend="torch_pim", options=options)(X)


def test_a_wrong_key_in_a_device_file(tmp_path: Path) -> None:
    """The user's own device, from a preset with one key misspelt and one value impossible."""
    preset = (PRESETS / "devices" / "ndp-hmc-64.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(preset.replace("clock_ghz =", "clock_gz =", 1))
    with pytest.raises(SpecError, match=r"mine\.toml.*'clock_gz'.*'clock_ghz'"):
        torch_pim.compile(MODEL, device=path)
    path.write_text(preset.replace("cores = 64", "cores = 0", 1))
    with pytest.raises(SpecError, match=r"mine\.toml.*cores"):
        torch_pim.compile(MODEL, device=path)
    path.write_text(preset.replace("cores = 64", "cores = 7", 1))
    model = torch_pim.compile(MODEL, device=path, policy="pim")
    assert_equal_to_eager(model(X), MODEL(X))


def _remove_model(bundle: Path) -> None:
    (bundle / "model.json").unlink()


def _alter_model(bundle: Path) -> None:
    text = (bundle / "model.json").read_text()
    (bundle / "model.json").write_text(text.replace("2.944439", "2.944438"))


def _rename_column(bundle: Path) -> None:
    """A model of another version, whose first column this one does not compute."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    schema = Schema.from_json(manifest["schema"])
    first, *others = schema.columns
    other = dataclasses.replace(schema, columns=(dataclasses.replace(first, name="log_of_something"), *others))
    manifest["schema"] = other.to_json()
    (bundle / "manifest.json").write_text(json.dumps(manifest))


BROKEN: list[tuple[Callable[[Path], None], type[Exception], str]] = [
    (_remove_model, ModelMissing, r"model\.json cannot be read"),
    (_alter_model, ChecksumMismatch, r"model\.json has sha256 .* the file was altered"),
    (_rename_column, SchemaMismatch, r"columns that this compiler does not compute.*log_of_something"),
]


@pytest.mark.parametrize(("damage", "error", "message"), BROKEN, ids=["missing", "altered", "schema"])
def test_a_bundle_that_cannot_be_used(
    damage: Callable[[Path], None], error: type[Exception], message: str, tmp_path: Path
) -> None:
    bundle = make_tiny_bundle(tmp_path / "bundle")
    torch_pim.compile(MODEL, policy="learned", bundle=bundle, on_model_error="error")
    damage(bundle)
    with pytest.raises(error, match=message):
        torch_pim.compile(MODEL, policy="learned", bundle=bundle, on_model_error="error")
    with pytest.warns(ModelWarning, match=rf"decides by the cost model.*{error.__name__}") as caught:
        model = torch_pim.compile(MODEL, policy="learned", bundle=bundle)
    assert len(caught) == 1
    assert_equal_to_eager(model(X), MODEL(X))
    assert all(entry.policy in ("learned", "cost-model") for entry in model.plan[0].entries)


def test_a_bundle_that_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"expected a bundle folder with manifest\.json"):
        torch_pim.compile(MODEL, policy="learned", bundle=tmp_path, on_model_error="error")


def _profile_file(folder: Path, host_id: str, **counters: float) -> Path:
    code_hash = lower_model(MODEL, (X,)).program.functions[0].code_hash
    path = folder / "profiles.jsonl"
    write_profiles(path, [HostProfile(code_hash, host_id, "perf", wall_time_ns=100.0, **counters)])
    return path


def test_counters_that_were_not_measured_are_no_zeros(tmp_path: Path) -> None:
    """A profile with wall time alone is used; its other counters are NaN."""
    path = _profile_file(tmp_path, load_host("cpu-8c").identity)
    model = torch_pim.compile(MODEL, policy="cost-model", profile=path)
    assert_equal_to_eager(model(X), MODEL(X))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1.0", '"many"'])
def test_counters_that_are_no_numbers(value: str, tmp_path: Path) -> None:
    path = _profile_file(tmp_path, load_host("cpu-8c").identity, llc_misses=12.0)
    path.write_text(path.read_text().replace('"llc_misses": 12.0', f'"llc_misses": {value}'))
    with pytest.raises(ProfileError, match=r"profiles\.jsonl, line 1: .*(null|finite)"):
        torch_pim.compile(MODEL, policy="cost-model", profile=path)


def test_a_profile_of_another_host(tmp_path: Path) -> None:
    path = _profile_file(tmp_path, "somebody-else@0123")
    with pytest.raises(OptionError, match=r"holds no profile of host cpu-8c@.*, only of somebody-else@0123"):
        torch_pim.compile(MODEL, policy="cost-model", profile=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w, b, x: (w, b, torch.randn(2, 5)), r"main: argument 2 has shape 2x5, compiled for 2x4"),
        (lambda w, b, x: (w, b, torch.randn(4)), r"main: argument 2 has shape 4, compiled for 2x4"),
        (lambda w, b, x: (w, b, x.double()), r"main: argument 2 is torch\.float64, compiled for torch\.float32"),
        (lambda w, b, x: (w, b), r"main: 2 arguments given, 3 expected"),
        (lambda w, b, x: (w, b, x, x), r"main: 4 arguments given, 3 expected"),
        (lambda w, b, x: (w, 3.0, x), r"main: argument 1 must be a tensor"),
    ],
    ids=["size", "rank", "dtype", "too few", "too many", "number"],
)
def test_arguments_that_do_not_fit_a_compiled_graph(change: Callable[..., Any], message: str) -> None:
    graph = CompiledGraph(lower_model(MODEL, (X,)), target_for("pim"))
    arguments = (MODEL.weight, MODEL.bias, X)
    assert_equal_to_eager(graph(arguments), [MODEL(X)])
    with pytest.raises(ShapeError, match=message):
        graph(change(*arguments))
    assert_equal_to_eager(graph(arguments), [MODEL(X)])


def test_a_compiled_model_recompiles_for_another_shape_and_type() -> None:
    model = torch_pim.compile(MODEL, policy="pim")
    for x in (X, torch.randn(7, 4), torch.randn(1, 2, 4)):
        assert_equal_to_eager(model(x), MODEL(x))
    with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match="same reduction dim"):
        model(torch.randn(2, 5))


def test_a_cache_folder_that_cannot_be_written_stops_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file where the folder should be: nobody may write there, not even a superuser."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCH_PIM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    model = torch_pim.compile(MODEL, policy="pim")
    assert_equal_to_eager(model(X), MODEL(X))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
