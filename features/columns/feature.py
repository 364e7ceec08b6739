"""One feature: its column, and the function that computes its value from the facts of its group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch_pim.features.schema import FeatureColumn

Facts = TypeVar("Facts")


@dataclass(frozen=True, slots=True)
class Feature(Generic[Facts]):
    """A column with its formula, so that neither can be changed without the other."""

    column: FeatureColumn
    value: Callable[[Facts], float]


def feature(name: str, unit: str, description: str, value: Callable[[Facts], float]) -> Feature[Facts]:
    return Feature(FeatureColumn(name, "float64", unit, description), value)


def columns(features: Iterable[Feature[Facts]]) -> tuple[FeatureColumn, ...]:
    return tuple(f.column for f in features)


def values(features: Iterable[Feature[Facts]], facts: Facts) -> tuple[float, ...]:
    return tuple(float(f.value(facts)) for f in features)


def log2_1p(value: float) -> float:
    """log2(1 + value): 0 for nothing, finite for any count; NaN stays NaN."""
    return math.log2(1.0 + value)


def log2_ratio(numerator: float, denominator: float) -> float:
    """log2 of a ratio of two positive numbers."""
    return math.log2(numerator / denominator)


def ratio(numerator: float, denominator: float) -> float:
    """A quotient that is 0 where there is nothing to divide by."""
    return numerator / denominator if denominator else 0.0
