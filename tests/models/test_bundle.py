from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xgboost

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.errors import ChecksumMismatch, ModelMissing, SchemaMismatch, UnsupportedFormat
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.bundle_writer import write_bundle
from torch_pim.models.learned.inputs import MODEL_SCHEMA, model_row
from torch_pim.models.learned.manifest import ColumnRange, Manifest
from torch_pim.models.testing import make_tiny_bundle


@pytest.fixture
def folder(tmp_path):
    return make_tiny_bundle(tmp_path / "tiny", residuals=(0.25, -0.5))


@pytest.fixture
def row(make_copy, host: HostSpec, device: DeviceSpec):
    return model_row(make_copy(2**20), None, host, device, CostModel())


def edit(folder, change):
    """Edits the manifest by hand."""
    path = folder / "manifest.json"
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table))


def test_what_is_written_is_read(folder, row):
    bundle = Bundle.load(folder)
    assert bundle.manifest.name == "tiny"
    assert sorted(bundle.manifest.files) == ["card.md", "device_residual.json", "host_residual.json", "model.json"]
    assert bundle.scores([row]) == pytest.approx([0.95], abs=1e-6)
    assert bundle.log_residuals([row, row]) == ((0.25, -0.5),) * 2
    assert Manifest.from_json(bundle.manifest.to_json()) == bundle.manifest
    assert bundle.scores([]) == ()


def test_equal_bundles_are_equal_bytes(tmp_path):
    first, second = (make_tiny_bundle(tmp_path / name, residuals=(0.1, 0.2)) for name in "ab")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    assert Bundle.load(first).digest == Bundle.load(second).digest
    assert Bundle.load(make_tiny_bundle(tmp_path / "c", threshold=0.6)).digest != Bundle.load(first).digest


def test_a_bundle_is_replaced_whole_and_nothing_is_left_over(tmp_path, folder):
    make_tiny_bundle(folder, threshold=0.7)
    assert Bundle.load(folder).manifest.threshold == 0.7
    assert not (folder / "host_residual.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_a_bundle_that_cannot_be_loaded_is_never_written(folder, tmp_path):
    before = Bundle.load(folder)
    with pytest.raises(UnsupportedFormat, match="not JSON"):
        write_bundle(folder, before.manifest, model=b"{", card="")
    assert Bundle.load(folder).digest == before.digest
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_other_folders_are_not_overwritten(tmp_path, folder):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("important")
    manifest = Bundle.load(folder).manifest
    with pytest.raises(FileExistsError, match="is no bundle"):
        write_bundle(tmp_path / "work", manifest, model=b"", card="")
    assert (tmp_path / "work" / "thesis.txt").read_text() == "important"


def test_a_missing_folder_manifest_or_file_is_named(folder, tmp_path):
    with pytest.raises(ModelMissing, match=r"none/manifest.json cannot be read .*torch-pim train"):
        Bundle.load(tmp_path / "none")
    (folder / "device_residual.json").unlink()
    with pytest.raises(ModelMissing, match=r"device_residual\.json"):
        Bundle.load(folder)


@pytest.mark.parametrize("name", ["model.json", "card.md", "host_residual.json"])
def test_an_altered_file_is_refused(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content.replace(b"t", b"T", 1))
    with pytest.raises(ChecksumMismatch, match=f"{name} has sha256 .*altered"):
        Bundle.load(folder)


def columns(change):
    """Rewrites the schema consistently, as another version of the program would have written it."""

    def edit_schema(table):
        from torch_pim.features.schema import FeatureColumn, Schema

        found = [FeatureColumn(**column) for column in table["schema"]["columns"]]
        version, changed = change(table["schema"]["version"], found)
        table["schema"] = Schema(version, tuple(changed)).to_json()

    return edit_schema


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda t: t.update(format=2), UnsupportedFormat, "bundle format 2: this version reads format 1"),
        (lambda t: t.pop("format"), UnsupportedFormat, "bundle format None"),
        (lambda t: t.update(treshold=0.5), UnsupportedFormat, r"unknown key 'treshold'. Did you mean 'threshold'"),
        (lambda t: t.pop("calibration"), UnsupportedFormat, "'calibration' is missing"),
        (lambda t: t.update(threshold=1.5), UnsupportedFormat, r"threshold 1.5: expected a number between"),
        (lambda t: t.update(threshold="high"), UnsupportedFormat, "could not convert"),
        (lambda t: t.update(name=5), UnsupportedFormat, "'name' is 5: expected a str"),
        (lambda t: t.update(kind="neural"), UnsupportedFormat, "kind 'neural': expected one of xgboost, logistic"),
        (lambda t: t.update(kind="logistic"), UnsupportedFormat, "logistic model: expected exactly the keys"),
        (lambda t: t.update(version="1"), UnsupportedFormat, "version '1': expected three numbers"),
        (lambda t: t["files"].update({"../evil": "0"}), UnsupportedFormat, "'../evil': expected a plain name"),
        (lambda t: t["files"].pop("model.json"), UnsupportedFormat, r"lists no model.json"),
        (lambda t: t["cost_constants"].update(host_compute=0), UnsupportedFormat, "host_compute"),
        (lambda t: t.update(profile_origins=["guessed"]), UnsupportedFormat, "profile_origins"),
        (lambda t: t["calibration"].update(slope=-1), UnsupportedFormat, "calibration slope"),
        (lambda t: t["calibration"].update(slop=1), UnsupportedFormat, "wrong type"),
        (lambda t: t["schema"]["columns"][0].update(unit="furlong"), SchemaMismatch, "changed by hand"),
        (columns(lambda v, c: (v + 1, c)), SchemaMismatch, "schema version"),
        (columns(lambda v, c: (v, [replace(c[0], name="log_iteration"), *c[1:]])), SchemaMismatch, "log_iterations"),
        (columns(lambda v, c: (v, [replace(c[0], unit="furlong"), *c[1:]])), SchemaMismatch, "furlong"),
        (columns(lambda v, c: (v, c[::-1])), SchemaMismatch, "in the same order"),
        (columns(lambda v, c: (v, c[:2])), SchemaMismatch, "trained on 3 columns"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(folder, change, error, match):
    edit(folder, change)
    with pytest.raises(error, match=match):
        Bundle.load(folder)


def test_ranges_must_be_of_columns_that_the_model_reads(folder):
    manifest = Bundle.load(folder).manifest
    with pytest.raises(UnsupportedFormat, match="'log_flops', which the model does not read"):
        replace(manifest, ranges=(ColumnRange("log_flops", 0.0, 1.0),))
    with pytest.raises(UnsupportedFormat, match=r"2.0 is above 1.0"):
        replace(manifest, ranges=(ColumnRange("log_iterations", 2.0, 1.0),))


def test_a_trained_booster_scores_as_xgboost_does(tmp_path, folder, make_copy, make_matmul, host, device):
    rng = np.random.default_rng(0)
    names = MODEL_SCHEMA.names
    matrix = rng.normal(size=(400, len(names)))
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    label = (np.nan_to_num(matrix[:, -3]) + 0.3 * rng.normal(size=400) > 0).astype(float)
    chosen = MODEL_SCHEMA.subset([*names[:5], *names[-6:]])
    positions = MODEL_SCHEMA.positions_of(chosen)
    training = xgboost.DMatrix(matrix[:, positions], label, feature_names=list(chosen.names))
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1, "seed": 0}, training, 20)
    manifest = replace(Bundle.load(folder).manifest, schema=chosen, ranges=())
    written = write_bundle(tmp_path / "b", manifest, model=bytes(booster.save_raw("json")), card="card")
    bundle = Bundle.load(written)
    rows = [model_row(n, None, host, device, CostModel()) for n in (make_copy(1000), make_matmul(64, 32, 16))]
    rows += [tuple(r) for r in matrix[:50]]
    expected = booster.predict(
        xgboost.DMatrix(np.array(rows)[:, positions], feature_names=list(chosen.names)), output_margin=True
    )
    assert bundle.scores(rows) == tuple(bundle.manifest.calibration(float(m)) for m in expected)


def test_missing_counters_pass_as_missing(folder, row):
    position = MODEL_SCHEMA.names.index("static_log_time_ratio")
    without = (*row[:position], float("nan"), *row[position + 1 :])
    assert Bundle.load(folder).scores([without]) == pytest.approx([0.05], abs=1e-6)  # the default side is left


def test_the_bundle_brings_its_fitted_constants(tmp_path):
    constants = CostConstants(host_latency=0.7, device_compute=1.4, profile_weight=0.3)
    bundle = Bundle.load(make_tiny_bundle(tmp_path / "b", constants=constants))
    assert bundle.cost_model == CostModel(constants)


def test_a_copied_bundle_is_the_same_bundle(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    assert Bundle.load(tmp_path / "copy").digest == Bundle.load(folder).digest
