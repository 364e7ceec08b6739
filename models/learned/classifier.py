"""Classifiers of a bundle: what turns model rows into raw margins, and margins into calibrated scores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torch_pim.models.errors import UnsupportedFormat
from torch_pim.models.learned.trees import TreeEnsemble

Kind = Literal["xgboost", "logistic"]
KINDS: tuple[Kind, ...] = ("xgboost", "logistic")


class Classifier(Protocol):
    """Gives each row a margin: above zero speaks for PIM."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of a row; empty if the model file does not say."""
        ...

    @property
    def width(self) -> int: ...

    def margins(self, rows: ArrayLike) -> NDArray[np.floating[Any]]:
        """Raw scores, shape (rows,), of a (rows, width) matrix; NaN is a missing value."""
        ...


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """Logistic regression on standardised columns, as plain numbers; a missing value counts as the column's mean."""

    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    """Standard deviations, all above zero."""
    coefficients: tuple[float, ...]
    intercept: float

    def __post_init__(self) -> None:
        """Raises UnsupportedFormat unless all parts have one finite number per column."""
        for name in ("means", "scales", "coefficients"):
            values = getattr(self, name)
            if len(values) != len(self.features) or not all(math.isfinite(v) for v in values):
                raise UnsupportedFormat(f"logistic model: {name} must be {len(self.features)} finite numbers")
        if not all(scale > 0 for scale in self.scales) or not math.isfinite(self.intercept):
            raise UnsupportedFormat("logistic model: scales must be above zero and the intercept finite")

    @property
    def width(self) -> int:
        return len(self.features)

    def margins(self, rows: ArrayLike) -> NDArray[np.floating[Any]]:
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.width:
            raise ValueError(f"rows of shape {values.shape}: expected (rows, {self.width})")
        standard = (values - np.array(self.means)) / np.array(self.scales)
        # Summed per row and not as a matrix product, whose order depends on how many rows there are.
        terms = np.where(np.isnan(standard), 0.0, standard) * np.array(self.coefficients)
        return np.asarray(np.add.accumulate(terms, axis=1)[:, -1] + self.intercept)

    def to_json(self) -> str:
        """Text of a model.json of kind `logistic`."""
        table = {name: getattr(self, name) for name in LOGISTIC_FIELDS}
        return json.dumps(table, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> LogisticModel:
        """Inverse of `to_json` after parsing; raises UnsupportedFormat."""
        if set(table) != set(LOGISTIC_FIELDS):
            raise UnsupportedFormat(f"logistic model: expected exactly the keys {', '.join(LOGISTIC_FIELDS)}")
        try:
            return cls(
                features=tuple(str(name) for name in table["features"]),
                means=tuple(float(v) for v in table["means"]),
                scales=tuple(float(v) for v in table["scales"]),
                coefficients=tuple(float(v) for v in table["coefficients"]),
                intercept=float(table["intercept"]),
            )
        except (TypeError, ValueError) as error:
            raise UnsupportedFormat(f"logistic model: {error}") from error


LOGISTIC_FIELDS = ("features", "means", "scales", "coefficients", "intercept")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probability that PIM is faster, from a margin: 1 / (1 + exp(-(slope * margin + intercept))) (Platt, 1999)."""

    slope: float = 1.0
    intercept: float = 0.0

    def __call__(self, margin: float) -> float:
        exponent = self.slope * margin + self.intercept
        if exponent >= 0:
            return 1.0 / (1.0 + math.exp(-exponent))
        grown = math.exp(exponent)
        return grown / (1.0 + grown)


def read_classifier(kind: Kind, table: Mapping[str, Any]) -> Classifier:
    """The classifier in a parsed model.json; raises UnsupportedFormat."""
    if kind == "logistic":
        return LogisticModel.from_json(table)
    trees = TreeEnsemble.from_xgboost_json(table)
    if trees.objective != "binary:logistic":
        raise UnsupportedFormat(f"the classifier's objective is {trees.objective!r}: expected 'binary:logistic'")
    return trees
