"""The constants of the cost model, fitted on training rows alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.rows import RowSource
from torch_pim.experiments.train.decisions import nest_regret
from torch_pim.experiments.train.settings import TrainingSettings
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.fit import DeviceLabel, HostLabel, fit_constants

PROFILE_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
LARGEST_SAMPLE = 6000
"""Labels per side that constants are fitted on: eight numbers do not need more."""


def fitted_constants(source: RowSource, rows: NDArray[np.int64], settings: TrainingSettings) -> CostConstants:
    """Factors by robust least squares, then the profile weight that loses least time on the same rows."""
    labels = source.labels
    index = [source.index[row] for row in rows]
    random = np.random.default_rng([settings.seed, 11])

    def sampled(keys: set[tuple[int, int]]) -> list[tuple[int, int]]:
        ordered = sorted(keys)
        if len(ordered) > LARGEST_SAMPLE:
            ordered = [ordered[i] for i in sorted(random.choice(len(ordered), LARGEST_SAMPLE, replace=False))]
        return ordered

    constants = fit_constants(
        [
            HostLabel(labels.nests[n].nest, labels.hosts[h], float(labels.host_ns[n, h]))
            for n, h in sampled({(n, h) for n, h, _ in index})
        ],
        [
            DeviceLabel(labels.nests[n].nest, labels.devices[d], float(labels.device_ns[n, d]))
            for n, d in sampled({(n, d) for n, _, d in index})
        ],
    )
    host_ns, device_ns = source.host_times()[rows], source.device_times()[rows]

    def lost(weight: float) -> float:
        estimates = source.estimates(replace(constants, profile_weight=weight), "profiled")
        on_pim = np.array([estimates[row].device_ns < estimates[row].host_ns for row in rows])
        return nest_regret(host_ns, device_ns, on_pim)

    return replace(constants, profile_weight=min(PROFILE_WEIGHTS, key=lambda w: (lost(w), abs(w - 0.5))))
