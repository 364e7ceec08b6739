"""How much of a residual correction to apply, judged on kernels that it has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GATES = (0.0, 0.25, 0.5, 0.75, 1.0)
WORTH = 0.02
"""A larger gate must lower the error by this share, because an ungated residual hurts on a good cost model."""


def log_time_error(residual: Floats, correction: Floats, weights: Floats) -> float:
    """Weighted mean absolute error of ln(time) after the correction."""
    return float(np.average(np.abs(residual - correction), weights=weights))


def choose_gate(residual: Floats, out_of_fold: Floats, weights: Floats) -> float:
    """The smallest gate within WORTH of the least error; `out_of_fold` are predictions of `residual` by other folds."""
    errors = [log_time_error(residual, gate * out_of_fold, weights) for gate in GATES]
    least = min(errors)
    return next(gate for gate, error in zip(GATES, errors, strict=True) if error <= least * (1 + WORTH))
