"""What cross-validation says: every policy, with and without profiles, on seen and on unseen machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.rows import Setting
from torch_pim.experiments.train.calibration import expected_calibration_error, probabilities
from torch_pim.experiments.train.decisions import DecisionMetrics, decision_metrics
from torch_pim.experiments.train.out_of_fold import EVALUATED
from torch_pim.experiments.train.pipeline import Trained

Bools = NDArray[np.bool_]
Machines = Literal["seen", "unseen"]


@dataclass(frozen=True, slots=True)
class CrossValidated:
    """Metrics of one policy in one setting, over nests whose group was not trained on."""

    policy: str
    setting: Setting
    machines: Machines
    metrics: DecisionMetrics


@dataclass(frozen=True, slots=True)
class PairMetrics:
    """The learned policy on one pair of preset machines."""

    host: str
    device: str
    setting: Setting
    machines: Machines
    metrics: DecisionMetrics


@dataclass(frozen=True, slots=True)
class CalibrationMetrics:
    """Quality of the calibrated score as a probability, out of fold, on the machines that were trained on."""

    setting: Setting
    brier_score: float
    """Mean squared distance of score and outcome (Brier, 1950)."""
    expected_error: float


def decisions(trained: Trained, setting: Setting) -> dict[str, Bools]:
    """Sides by policy for every row, out of fold; where the learned one abstains, the cost model decides."""
    scores = probabilities(trained.calibration, trained.out_of_fold.margins[setting])
    host, device = trained.out_of_fold.cost_model_ns[setting]
    return {
        "learned": np.where(trained.out_of_fold.abstained, device < host, scores >= trained.threshold),
        "logistic": trained.out_of_fold.logistic_margins[setting] > 0,
        "cost-model": device < host,
        "host": np.zeros(len(scores), np.bool_),
        "pim": np.ones(len(scores), np.bool_),
    }


def cross_validated(trained: Trained) -> tuple[CrossValidated, ...]:
    """All policies in all settings; unseen machines only if some were held out."""
    units = trained.units()
    found = []
    for machines, rows in _machine_rows(trained):
        for setting in EVALUATED:
            for policy, on_pim in decisions(trained, setting).items():
                found.append(CrossValidated(policy, setting, machines, _metrics(trained, on_pim, units, rows)))
    return tuple(found)


def by_pair(trained: Trained) -> tuple[PairMetrics, ...]:
    """The learned policy on every pair whose machines have a name of their own (not drawn at random)."""
    labels, units = trained.labels, trained.units()
    index = np.array([(h, d) for _, h, d in trained.index])
    found = []
    for host, device in labels.pairs:
        names = labels.hosts[host].name, labels.devices[device].name
        if any(name.startswith("random-") for name in names):
            continue
        rows = (index == (host, device)).all(1)
        machines: Machines = "seen" if trained.training_rows[rows].all() else "unseen"
        for setting in EVALUATED:
            metrics = _metrics(trained, decisions(trained, setting)["learned"], units, rows)
            found.append(PairMetrics(*names, setting, machines, metrics))
    return tuple(found)


def calibration_metrics(trained: Trained) -> tuple[CalibrationMetrics, ...]:
    rows = trained.training_rows
    wins = (trained.device_ns < trained.host_ns)[rows]
    found = []
    for setting in EVALUATED:
        scores = probabilities(trained.calibration, trained.out_of_fold.margins[setting])[rows]
        brier = float(np.mean((scores - wins) ** 2))
        found.append(CalibrationMetrics(setting, brier, expected_calibration_error(scores, wins)))
    return tuple(found)


def flat_metrics(trained: Trained) -> dict[str, float]:
    """Everything above as `policy.setting.machines.metric`, rounded; figures that do not exist are left out."""
    flat: dict[str, float] = {}
    for entry in cross_validated(trained):
        metrics = entry.metrics
        for name in ("decisive_balanced_accuracy", "regret", "worst_regret", "worst_slowdown", "coverage"):
            flat[f"{entry.policy}.{entry.setting}.{entry.machines}.{name}"] = getattr(metrics, name)
    for machines, rows in _machine_rows(trained):
        flat[f"learned.{machines}.abstention"] = float(trained.out_of_fold.abstained[rows].mean())
    for calibration in calibration_metrics(trained):
        flat[f"learned.{calibration.setting}.seen.brier_score"] = calibration.brier_score
        flat[f"learned.{calibration.setting}.seen.expected_calibration_error"] = calibration.expected_error
    return {name: float(f"{value:.6g}") for name, value in sorted(flat.items()) if np.isfinite(value)}


def _machine_rows(trained: Trained) -> tuple[tuple[Machines, Bools], ...]:
    seen = trained.training_rows
    return (("seen", seen),) if seen.all() else (("seen", seen), ("unseen", ~seen))


def _metrics(trained: Trained, on_pim: Bools, units: NDArray[np.int64], rows: Bools) -> DecisionMetrics:
    free = np.zeros(int(rows.sum()), np.bool_)
    return decision_metrics(trained.host_ns[rows], trained.device_ns[rows], on_pim[rows], units[rows], free)
