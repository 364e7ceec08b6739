"""From raw margins to probabilities (Platt, 1999), and the score from which on a nest is placed on PIM."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.train.decisions import decision_metrics
from torch_pim.experiments.train.settings import TrainingError
from torch_pim.models.learned.classifier import Calibration

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

THRESHOLDS = tuple(round(0.2 + 0.02 * i, 2) for i in range(31))
"""0.20, 0.22, ... 0.80: scores beyond are never in doubt."""
BINS = 10


def fit_calibration(margins: Floats, labels: Bools) -> Calibration:
    """Slope and intercept of the sigmoid that fits out-of-fold margins best; TrainingError for useless margins."""
    from sklearn.linear_model import LogisticRegression

    if labels.all() or not labels.any():
        raise TrainingError("all calibration rows have the same label")
    model = LogisticRegression(C=1e6, max_iter=1000).fit(margins[:, None], labels.astype(np.int64))
    slope, intercept = float(f"{model.coef_[0, 0]:.6g}"), float(f"{model.intercept_[0]:.6g}")
    if not slope > 0:
        raise TrainingError(f"margins speak against their labels (slope {slope}): the features do not carry the label")
    return Calibration(slope, intercept)


def probabilities(calibration: Calibration, margins: Floats) -> Floats:
    """Calibrated scores of many margins."""
    return np.array([calibration(float(margin)) for margin in margins])


def regret_by_threshold(
    scores: Floats, host_ns: Floats, device_ns: Floats, units: NDArray[np.int64]
) -> tuple[tuple[float, float], ...]:
    """(threshold, regret) for every candidate threshold, on rows that are not forced."""
    free = np.zeros(len(scores), np.bool_)
    return tuple((t, decision_metrics(host_ns, device_ns, scores >= t, units, free).regret) for t in THRESHOLDS)


def choose_threshold(curve: tuple[tuple[float, float], ...], slack: float = 0.001) -> float:
    """The threshold nearest to one half among those whose regret is within `slack` of the least."""
    least = min(regret for _, regret in curve)
    return min((t for t, regret in curve if regret <= least + slack), key=lambda t: (abs(t - 0.5), t))


def reliability(scores: Floats, labels: Bools) -> tuple[tuple[float, float, int], ...]:
    """(mean score, share of PIM wins, rows) per tenth of the score range; empty tenths are left out."""
    bins = np.minimum((scores * BINS).astype(np.int64), BINS - 1)
    return tuple(
        (float(scores[bins == b].mean()), float(labels[bins == b].mean()), int((bins == b).sum()))
        for b in range(BINS)
        if (bins == b).any()
    )


def expected_calibration_error(scores: Floats, labels: Bools) -> float:
    """Mean distance of score and share of wins over the tenths, weighted by rows (Naeini et al., 2015)."""
    parts = reliability(scores, labels)
    return float(sum(abs(score - share) * rows for score, share, rows in parts) / max(1, len(scores)))
