"""Training from a label set: grouped cross-validation first, then the final models on all training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.label_set import LabelSet
from torch_pim.experiments.label.rows import FeatureRows, RowSource, Setting
from torch_pim.experiments.train.boosting import CLASSIFY, REGRESS, margins, train_trees
from torch_pim.experiments.train.calibration import (
    choose_threshold,
    fit_calibration,
    probabilities,
    regret_by_threshold,
)
from torch_pim.experiments.train.cost_constants import fitted_constants
from torch_pim.experiments.train.decisions import sample_weights
from torch_pim.experiments.train.folds import grouped_folds
from torch_pim.experiments.train.gates import choose_gate
from torch_pim.experiments.train.logistic import train_logistic
from torch_pim.experiments.train.ranges import outside, ranges_of
from torch_pim.experiments.train.settings import TrainingError, TrainingSettings
from torch_pim.features.profile import Origin
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.estimate import CostEstimate
from torch_pim.models.learned.classifier import Calibration, LogisticModel
from torch_pim.models.learned.inputs import MODEL_SCHEMA

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]

SETTINGS: tuple[Setting, ...] = ("profiled", "wall", "static")
EVALUATED: tuple[Setting, ...] = ("profiled", "static")
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


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Predictions for every row by models that saw neither its group nor, where it is unseen, its machines.

    Arrays are per row and setting in EVALUATED; `mixed` is the row as it would be drawn for training.
    """

    margins: dict[Setting, Floats]
    mixed_margins: Floats
    logistic_margins: dict[Setting, Floats]
    cost_model_ns: dict[Setting, tuple[Floats, Floats]]
    abstained: Bools
    """Rows outside of the ranges of their fold's training rows, where the cost model decides."""
    host_correction: Floats
    device_correction: Floats
    host_residual: Floats
    device_residual: Floats


@dataclass(frozen=True, eq=False)
class Trained:
    """Final models with all that was chosen on out-of-fold predictions."""

    settings: TrainingSettings
    labels: LabelSet
    index: tuple[tuple[int, int, int], ...]
    """(nest, host, device) of every row."""
    host_ns: Floats
    device_ns: Floats
    training_rows: Bools
    """False for rows of machines that training leaves out."""
    used_features: FeatureRows
    """The rows that the final models were trained on."""
    models: Models
    out_of_fold: OutOfFold
    calibration: Calibration
    threshold: float
    threshold_curve: tuple[tuple[float, float], ...]
    host_gate: float
    device_gate: float

    def units(self) -> Indices:
        """What is judged as one: a family on a pair of machines."""
        families = {name: i for i, name in enumerate(sorted({n.family for n in self.labels.nests}))}
        pairs = {pair: i for i, pair in enumerate(self.labels.pairs)}
        return np.array([families[self.labels.nests[n].family] * len(pairs) + pairs[h, d] for n, h, d in self.index])


def train(labels: LabelSet, settings: TrainingSettings) -> Trained:
    """Trains everything that a bundle holds; equal labels and settings give equal models.

    Raises TrainingError where there is too little to learn from.
    """
    source = RowSource(labels)
    host_ns, device_ns = source.host_times(), source.device_times()
    groups = np.array([labels.nests[n].group for n, _, _ in source.index])
    seen = seen_machines(labels, settings)
    training = np.array([seen[h, d] for _, h, d in source.index])
    if not training.any():
        raise TrainingError("no machine is left to train on: label more machines or hold fewer out")
    wins = device_ns < host_ns
    drawn = draw_settings(len(source.index), settings)

    folds = grouped_folds(wins, groups, settings.folds, settings.seed)
    made = OutOfFoldBuilder(len(source.index))
    for number, (train_rows, test_rows) in enumerate(folds):
        kept = train_rows[training[train_rows]]
        models, rows = _fit(source, host_ns, device_ns, drawn, kept, replace(settings, seed=settings.seed + number + 1))
        made.add(models, rows, drawn, kept, test_rows, host_ns, device_ns)
    out_of_fold = made.done()

    used = np.flatnonzero(training)
    calibration = fit_calibration(out_of_fold.mixed_margins[used], wins[used])
    models, rows = _fit(source, host_ns, device_ns, drawn, used, settings)
    trained = Trained(
        settings=settings,
        labels=labels,
        index=source.index,
        host_ns=host_ns,
        device_ns=device_ns,
        training_rows=training,
        used_features=_mixed(rows, drawn)[used],
        models=models,
        out_of_fold=out_of_fold,
        calibration=calibration,
        threshold=0.5,
        threshold_curve=(),
        host_gate=0.0,
        device_gate=0.0,
    )
    curve = regret_by_threshold(
        probabilities(calibration, out_of_fold.mixed_margins[used]),
        host_ns[used],
        device_ns[used],
        trained.units()[used],
    )
    weights = np.minimum(1.0, np.maximum(host_ns, device_ns) / 20_000.0)[used] + 0.05
    return replace(
        trained,
        threshold=choose_threshold(curve),
        threshold_curve=curve,
        host_gate=choose_gate(out_of_fold.host_residual[used], out_of_fold.host_correction[used], weights),
        device_gate=choose_gate(out_of_fold.device_residual[used], out_of_fold.device_correction[used], weights),
    )


def seen_machines(labels: LabelSet, settings: TrainingSettings) -> dict[tuple[int, int], bool]:
    """Which pairs of machines are trained on."""
    return {
        (h, d): labels.hosts[h].cores not in settings.unseen_host_cores
        and labels.devices[d].cores not in settings.unseen_device_cores
        for h, d in labels.pairs
    }


def draw_settings(rows: int, settings: TrainingSettings) -> NDArray[np.int64]:
    """For every row the position in SETTINGS of what it is trained with: whole profile, wall time, or nothing."""
    draws = np.random.default_rng([settings.seed, 7]).random(rows)
    return np.where(
        draws < settings.masked_share, 2, np.where(draws < settings.masked_share + settings.wall_share, 1, 0)
    )


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


def _mixed(rows: Rows, drawn: NDArray[np.int64]) -> FeatureRows:
    return np.choose(drawn[:, None], [rows.features[setting] for setting in SETTINGS])


def _mixed_estimates(rows: Rows, drawn: NDArray[np.int64]) -> tuple[Floats, Floats]:
    host, device = ([rows.estimated_ns[setting][side] for setting in SETTINGS] for side in (0, 1))
    return np.choose(drawn, host), np.choose(drawn, device)


def _fit(
    source: RowSource,
    host_ns: Floats,
    device_ns: Floats,
    drawn: NDArray[np.int64],
    kept: Indices,
    settings: TrainingSettings,
) -> tuple[Models, Rows]:
    constants = fitted_constants(source, kept, settings)
    rows = make_rows(source, constants)
    features = _mixed(rows, drawn)[kept]
    columns = MODEL_SCHEMA.names
    wins = (device_ns < host_ns)[kept]
    weights = sample_weights(host_ns, device_ns)[kept]
    classifier = train_trees(
        features, wins.astype(np.float64), weights, columns, settings.classifier, CLASSIFY, settings.seed
    )
    estimated_host, estimated_device = _mixed_estimates(rows, drawn)
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


class OutOfFoldBuilder:
    """Collects the predictions of each fold's models for the rows that they did not see."""

    def __init__(self, rows: int) -> None:
        def empty() -> Floats:
            return np.full(rows, np.nan)

        self._margins = {setting: empty() for setting in EVALUATED}
        self._logistic = {setting: empty() for setting in EVALUATED}
        self._cost = {setting: (empty(), empty()) for setting in EVALUATED}
        self._mixed = empty()
        self._abstained = np.zeros(rows, np.bool_)
        self._corrections = empty(), empty()
        self._residuals = empty(), empty()

    def add(
        self,
        models: Models,
        rows: Rows,
        drawn: NDArray[np.int64],
        used: Indices,
        tested: Indices,
        host_ns: Floats,
        device_ns: Floats,
    ) -> None:
        """Predictions of one fold for its test rows."""
        for setting in EVALUATED:
            features = rows.features[setting][tested]
            self._margins[setting][tested] = margins(models.classifier, features)
            self._logistic[setting][tested] = models.logistic.margins(features)
            for side in (0, 1):
                self._cost[setting][side][tested] = rows.estimated_ns[setting][side][tested]
        mixed = _mixed(rows, drawn)
        features = mixed[tested]
        self._abstained[tested] = outside(features, ranges_of(mixed[used]))
        self._mixed[tested] = margins(models.classifier, features)
        estimates = _mixed_estimates(rows, drawn)
        for side, (residual, true) in enumerate(((models.host_residual, host_ns), (models.device_residual, device_ns))):
            self._corrections[side][tested] = margins(residual, features)
            self._residuals[side][tested] = np.log(true / estimates[side])[tested]

    def done(self) -> OutOfFold:
        return OutOfFold(
            margins=self._margins,
            mixed_margins=self._mixed,
            logistic_margins=self._logistic,
            cost_model_ns=self._cost,
            abstained=self._abstained,
            host_correction=self._corrections[0],
            device_correction=self._corrections[1],
            host_residual=self._residuals[0],
            device_residual=self._residuals[1],
        )
