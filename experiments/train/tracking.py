"""One MLflow run per training, in a SQLite store: parameters, metrics, data digest, pictures, model, bundle."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.experiments.train.bundle_output import flat_settings, save_bundle
from torch_pim.experiments.train.cv_report import flat_metrics
from torch_pim.experiments.train.pipeline import Trained
from torch_pim.experiments.train.plots import save_plots
from torch_pim.experiments.train.settings import TrainingError
from torch_pim.models.learned.inputs import MODEL_SCHEMA

EXPERIMENT = "torch-pim placement"
MODEL_NAME = "placement"


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """Where a run is recorded."""

    run_id: str
    tracking_uri: str
    model_uri: str


def tracking_uri(folder: Path) -> str:
    """A SQLite store inside `folder`; created on first use."""
    return f"sqlite:///{(folder / 'mlflow.db').absolute()}"


def save_tracked(
    trained: Trained, output: Path, uri: str, *, kind: Literal["xgboost", "logistic"] = "xgboost"
) -> TrackedRun:
    """Writes the bundle with the run's id in its manifest and records everything under it. Needs no network.

    Artifacts are kept in `mlartifacts` beside the database. Raises OptionError for a store that is not SQLite, and
    TrainingError if MLflow dropped the model's signature.
    """
    # MLflow reports usage to its makers as soon as it is imported, unless told not to.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow
    from mlflow.tracking import MlflowClient

    if not uri.startswith("sqlite:///"):
        raise OptionError(f"tracking store {uri!r}: expected sqlite:///path/to/file.db")
    database = Path(uri.removeprefix("sqlite:///"))
    database.parent.mkdir(parents=True, exist_ok=True)
    mlflow.set_tracking_uri(uri)
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    identity = (
        experiment.experiment_id
        if experiment is not None
        else client.create_experiment(
            EXPERIMENT, artifact_location=(database.parent / "mlartifacts").absolute().as_uri()
        )
    )
    name = f"{trained.settings.name} {trained.settings.version}"
    with mlflow.start_run(experiment_id=identity, run_name=name) as run, tempfile.TemporaryDirectory() as folder:
        mlflow.log_params({**flat_settings(trained.settings), "corpus": trained.labels.header.corpus})
        mlflow.set_tags(
            {
                "dataset_digest": trained.labels.content,
                "corpus_content": trained.labels.header.corpus_content,
                "emulator_version": trained.labels.header.emulator_version,
                "schema": MODEL_SCHEMA.sha256,
            }
        )
        mlflow.log_metrics(flat_metrics(trained))
        for picture in save_plots(trained, Path(folder)):
            mlflow.log_artifact(str(picture), "plots")
        model_uri = _log_model(mlflow, trained)
        bundle = save_bundle(trained, output, kind=kind, mlflow_run_id=run.info.run_id)
        mlflow.log_artifacts(str(bundle), "bundle")
        return TrackedRun(run.info.run_id, uri, model_uri)


def _log_model(mlflow: Any, trained: Trained) -> str:
    """Logs the booster with a signature made from the schema, not inferred from data."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema

    signature = ModelSignature(
        inputs=Schema([ColSpec(DataType.double, name) for name in MODEL_SCHEMA.names]),
        outputs=Schema([ColSpec(DataType.double)]),
    )
    logged = mlflow.xgboost.log_model(
        trained.models.classifier,
        name=MODEL_NAME,
        model_format="json",
        signature=signature,
        metadata={"schema_sha256": MODEL_SCHEMA.sha256},
        pip_requirements=[f"xgboost=={version('xgboost')}", f"numpy=={version('numpy')}"],
    )
    stored = mlflow.models.get_model_info(logged.model_uri).signature
    if stored is None or stored.inputs.input_names() != list(MODEL_SCHEMA.names):
        raise TrainingError("MLflow stored the model without the signature of its columns")
    return str(logged.model_uri)
