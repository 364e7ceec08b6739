"""Logistic regression beside the trees: the simplest learned policy, as plain numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torch_pim.models.learned.classifier import LogisticModel

Floats = NDArray[np.float64]


def train_logistic(
    features: Floats, labels: NDArray[np.bool_], weights: Floats, columns: tuple[str, ...]
) -> LogisticModel:
    """Standardised columns, missing values at their mean; a column without spread gets the coefficient 0."""
    from sklearn.linear_model import LogisticRegression

    known = ~np.isnan(features)
    filled = np.where(known, features, 0.0)
    count = np.maximum(known.sum(0), 1)
    means = filled.sum(0) / count
    spread = np.sqrt(np.where(known, (filled - means) ** 2, 0.0).sum(0) / count)
    varies = spread > 1e-9 * np.maximum(1.0, np.abs(means))
    scales = np.where(varies, spread, 1.0)
    standard = np.where(known & varies, (filled - means) / scales, 0.0)
    model = LogisticRegression(C=1.0, max_iter=500).fit(standard, labels.astype(np.int64), sample_weight=weights)

    def rounded(values: Floats) -> tuple[float, ...]:
        return tuple(float(f"{v:.8g}") for v in values)

    return LogisticModel(
        features=columns,
        means=rounded(means),
        scales=rounded(scales),
        coefficients=rounded(model.coef_[0]),
        intercept=float(f"{model.intercept_[0]:.8g}"),
    )
