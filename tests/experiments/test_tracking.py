"""MLflow: a run in SQLite, without network, with the signature of the schema and a loadable model."""

from pathlib import Path

import numpy as np
import pytest

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.experiments.train.pipeline import train
from torch_pim.experiments.train.plots import save_plots
from torch_pim.experiments.train.settings import TrainingSettings, TreeSettings
from torch_pim.experiments.train.tracking import save_tracked, tracking_uri
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.inputs import MODEL_SCHEMA

TREES = TreeSettings(trees=5, depth=3)


@pytest.fixture(scope="module")
def trained(labels):
    return train(labels, TrainingSettings(folds=3, classifier=TREES, residual=TREES))


def test_plots_are_png_files_with_the_same_bytes_each_time(trained, tmp_path):
    (tmp_path / "again").mkdir()
    for first, second in zip(save_plots(trained, tmp_path), save_plots(trained, tmp_path / "again"), strict=True):
        content = first.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert content == second.read_bytes()


def test_a_store_that_is_not_sqlite_is_refused(trained, tmp_path):
    with pytest.raises(OptionError, match="expected sqlite:///"):
        save_tracked(trained, tmp_path / "bundle", "http://localhost:5000")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow and its dependencies warn about themselves.
def test_run_holds_parameters_metrics_data_digest_model_and_bundle(trained, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.chdir(tmp_path)
    uri = tracking_uri(tmp_path / "store")
    run = save_tracked(trained, tmp_path / "bundle", uri)
    assert Bundle.load(tmp_path / "bundle").manifest.mlflow_run_id == run.run_id
    stored = mlflow.tracking.MlflowClient(tracking_uri=uri).get_run(run.run_id)
    assert stored.info.status == "FINISHED"
    assert stored.data.params["classifier.trees"] == "5"
    assert stored.data.tags["dataset_digest"] == trained.labels.content
    assert stored.data.tags["schema"] == MODEL_SCHEMA.sha256
    assert stored.data.metrics["learned.static.seen.decisive_balanced_accuracy"] > 0.9
    artifacts = Path(stored.info.artifact_uri.removeprefix("file://"))
    assert artifacts.is_relative_to(tmp_path / "store")
    assert (artifacts / "bundle" / "manifest.json").read_bytes() == (tmp_path / "bundle" / "manifest.json").read_bytes()
    assert {p.name for p in (artifacts / "plots").iterdir()} == {
        "calibration.png",
        "importance.png",
        "regret.png",
        "roc.png",
    }
    info = mlflow.models.get_model_info(run.model_uri)
    assert info.signature.inputs.input_names() == list(MODEL_SCHEMA.names)
    assert {str(kind) for kind in info.signature.inputs.input_types()} == {"DataType.double"}
    loaded = mlflow.xgboost.load_model(run.model_uri)
    assert loaded.feature_names == list(MODEL_SCHEMA.names)
    import xgboost

    rows = xgboost.DMatrix(trained.used_features, feature_names=list(MODEL_SCHEMA.names), missing=np.nan)
    expected = trained.models.classifier.predict(rows)
    assert np.array_equal(loaded.predict(rows), expected)
    assert {p.name for p in tmp_path.iterdir()} == {"bundle", "store"}, "nothing is written beside output and store"
