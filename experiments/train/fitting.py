"""One fit: cost constants first, then rows under them, then classifier, residuals and logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.rows import FeatureRows, RowSource, Setting
from torch_pim.experiments.train.boosting import CLASSIFY, REGRESS, train_trees
from torch_pim.experiments.train.cost_constants import fitted_constants
from torch_pim.experiments.train.decisions import sample_weights
from torch_pim.experiments.train.logistic import train_logistic
from torch_pim.experiments.train.settings import TrainingSettings
from torch_pim.features.profile import Origin
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.estimate import CostEstimate
from torch_pim.models.learned.classifier import LogisticModel
from torch_pim.models.learned.inputs import MODEL_SCHEMA

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

SETTINGS: tuple[Setting, ...] = ("profiled", "wall", "static")
TRAINED_ORIGINS: tuple[Origin, ...] = ("simulated", "wall", "none")
"""Origins of profiles that training rows have."""


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a label set under one set of cost constants."""

    features: dict[Setting, FeatureRows]
    estimated_ns: dict[Setting, tuple[Floats, Floats]]
    """Host and device times of the cost model."""


@dataclass(frozen=True, eq=False)
class Models:
    """What one fit yields."""

    constants: CostConstants
    classifier: Any
    host_residual: Any
    device_residual: Any
    logistic: LogisticModel


def make_rows(source: RowSource, constants: CostConstants) -> Rows:
    """Rows of all settings under the given constants."""
    features: dict[Setting, FeatureRows] = {}
    estimated: dict[Setting, tuple[Floats, Floats]] = {}
    for setting in SETTINGS:
        estimates = source.estimates(constants, setting)
        features[setting] = source.rows(estimates, setting)
        estimated[setting] = _times(estimates)
    return Rows(features, estimated)


def _times(estimates: Sequence[CostEstimate]) -> tuple[Floats, Floats]:
    return np.array([e.host_ns for e in estimates]), np.array([e.device_ns for e in estimates])


def mixed(rows: Rows, drawn: NDArray[np.int64]) -> FeatureRows:
    return np.choose(drawn[:, None], [rows.features[setting] for setting in SETTINGS])


def mixed_estimates(rows: Rows, drawn: NDArray[np.int64]) -> tuple[Floats, Floats]:
    host, device = ([rows.estimated_ns[setting][side] for setting in SETTINGS] for side in (0, 1))
    return np.choose(drawn, host), np.choose(drawn, device)


def fit_models(
    source: RowSource,
    host_ns: Floats,
    device_ns: Floats,
    drawn: NDArray[np.int64],
    kept: Indices,
    settings: TrainingSettings,
) -> tuple[Models, Rows]:
    constants = fitted_constants(source, kept, settings)
    rows = make_rows(source, constants)
    features = mixed(rows, drawn)[kept]
    columns = MODEL_SCHEMA.names
    wins = (device_ns < host_ns)[kept]
    weights = sample_weights(host_ns, device_ns)[kept]
    classifier = train_trees(
        features, wins.astype(np.float64), weights, columns, settings.classifier, CLASSIFY, settings.seed
    )
    estimated_host, estimated_device = mixed_estimates(rows, drawn)
    size = np.minimum(1.0, np.maximum(host_ns, device_ns) / 20_000.0)[kept] + 0.05

    def residual(true_ns: Floats, estimated_ns: Floats) -> Any:
        target = np.log(true_ns / estimated_ns)[kept]
        return train_trees(features, target, size, columns, settings.residual, REGRESS, settings.seed)

    models = Models(
        constants=constants,
        classifier=classifier,
        host_residual=residual(host_ns, estimated_host),
        device_residual=residual(device_ns, estimated_device),
        logistic=train_logistic(features, wins, weights, columns),
    )
    return models, rows
