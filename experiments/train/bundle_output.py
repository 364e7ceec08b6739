"""Writes what was trained as a bundle that the compiler can load."""

from __future__ import annotations

import os
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import torch_pim
from torch_pim.experiments.train.boosting import saved
from torch_pim.experiments.train.card import card
from torch_pim.experiments.train.cv_report import flat_metrics
from torch_pim.experiments.train.fitting import TRAINED_ORIGINS
from torch_pim.experiments.train.pipeline import Trained
from torch_pim.experiments.train.ranges import ranges_of
from torch_pim.experiments.train.settings import TrainingSettings
from torch_pim.models.learned.bundle_writer import write_bundle
from torch_pim.models.learned.classifier import Calibration
from torch_pim.models.learned.inputs import MODEL_SCHEMA
from torch_pim.models.learned.manifest import Manifest


def save_bundle(
    trained: Trained,
    path: str | os.PathLike[str],
    *,
    kind: Literal["xgboost", "logistic"] = "xgboost",
    mlflow_run_id: str = "",
) -> Path:
    """Writes the bundle folder and reads it back; equal training gives equal bytes."""
    classifier = kind == "xgboost"
    manifest = Manifest(
        name=trained.settings.name,
        version=trained.settings.version,
        kind=kind,
        schema=MODEL_SCHEMA,
        ranges=ranges_of(trained.used_features),
        profile_origins=TRAINED_ORIGINS,
        threshold=trained.threshold if classifier else 0.5,
        calibration=trained.calibration if classifier else Calibration(),
        host_residual_gate=trained.host_gate,
        device_residual_gate=trained.device_gate,
        cost_constants=trained.models.constants,
        dataset_digest=trained.labels.content,
        emulator_version=trained.labels.header.emulator_version,
        mlflow_run_id=mlflow_run_id,
        versions=library_versions(),
        training=flat_settings(trained.settings),
        metrics=flat_metrics(trained),
    )
    return write_bundle(
        path,
        manifest,
        model=saved(trained.models.classifier) if classifier else trained.models.logistic.to_json().encode(),
        card=card(trained, manifest),
        # A closed gate needs no regressor.
        host_residual=saved(trained.models.host_residual) if trained.host_gate else None,
        device_residual=saved(trained.models.device_residual) if trained.device_gate else None,
    )


def library_versions() -> dict[str, str]:
    """Versions that a training result depends on."""
    found = {name: version(name) for name in ("numpy", "scikit-learn", "scipy", "xgboost")}
    return {"torch-pim": torch_pim.__version__, **found}


def flat_settings(settings: TrainingSettings) -> dict[str, str | int | float | bool]:
    """Settings as `name` or `part.name`; lists as text."""
    flat: dict[str, str | int | float | bool] = {}
    for name, value in asdict(settings).items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": item for key, item in value.items()})
        elif isinstance(value, tuple | list):
            flat[name] = ", ".join(map(str, value))
        else:
            flat[name] = value
    return flat
