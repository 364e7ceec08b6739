"""Predictions for rows by models that have not seen their kernels: what everything that is chosen is chosen on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.rows import Setting
from torch_pim.experiments.train.boosting import margins
from torch_pim.experiments.train.fitting import Models, Rows, mixed, mixed_estimates
from torch_pim.experiments.train.ranges import outside, ranges_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]

EVALUATED: tuple[Setting, ...] = ("profiled", "static")


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
        drawn_features = mixed(rows, drawn)
        features = drawn_features[tested]
        self._abstained[tested] = outside(features, ranges_of(drawn_features[used]))
        self._mixed[tested] = margins(models.classifier, features)
        estimates = mixed_estimates(rows, drawn)
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
