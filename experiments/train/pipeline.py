"""Training from a label set: grouped cross-validation first, then the final models on all training rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.label_set import LabelSet
from torch_pim.experiments.label.rows import FeatureRows, RowSource
from torch_pim.experiments.train.calibration import (
    choose_threshold,
    fit_calibration,
    probabilities,
    regret_by_threshold,
)
from torch_pim.experiments.train.fitting import Models, fit_models, mixed
from torch_pim.experiments.train.folds import grouped_folds
from torch_pim.experiments.train.gates import choose_gate
from torch_pim.experiments.train.out_of_fold import OutOfFold, OutOfFoldBuilder
from torch_pim.experiments.train.settings import TrainingError, TrainingSettings
from torch_pim.models.learned.classifier import Calibration

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]


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
        models, rows = fit_models(
            source, host_ns, device_ns, drawn, kept, replace(settings, seed=settings.seed + number + 1)
        )
        made.add(models, rows, drawn, kept, test_rows, host_ns, device_ns)
    out_of_fold = made.done()

    used = np.flatnonzero(training)
    calibration = fit_calibration(out_of_fold.mixed_margins[used], wins[used])
    models, rows = fit_models(source, host_ns, device_ns, drawn, used, settings)
    trained = Trained(
        settings=settings,
        labels=labels,
        index=source.index,
        host_ns=host_ns,
        device_ns=device_ns,
        training_rows=training,
        used_features=mixed(rows, drawn)[used],
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
