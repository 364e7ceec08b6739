"""Abstention outside of what a model was trained on: trees do not extrapolate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from torch_pim.models.learned.inputs import MACHINE_COLUMNS, MODEL_SCHEMA
from torch_pim.models.learned.manifest import ColumnRange

SLACK = 0.05
"""Share of a column's range by which a value may pass either end."""


class RangeGuard:
    """Compares MODEL_SCHEMA rows with the training ranges of a manifest. A missing value (NaN) is never outside."""

    def __init__(self, ranges: Iterable[ColumnRange]) -> None:
        position = {column.name: i for i, column in enumerate(MODEL_SCHEMA.columns)}
        found = [(position[r.column], r) for r in ranges]
        self._machine = [(i, r) for i, r in found if r.column in MACHINE_COLUMNS]
        self._nest = [(i, r) for i, r in found if r.column not in MACHINE_COLUMNS]

    def machine_problem(self, row: Sequence[float]) -> str | None:
        """What about the machines is outside the training range, or None."""
        return _outside(self._machine, row)

    def nest_problem(self, row: Sequence[float]) -> str | None:
        """What about the nest is outside the training range, or None."""
        return _outside(self._nest, row)


def training_ranges(rows: Sequence[Sequence[float]], columns: Iterable[str]) -> tuple[ColumnRange, ...]:
    """Range of each named column over training rows of MODEL_SCHEMA; columns that are always missing have none."""
    position = {column.name: i for i, column in enumerate(MODEL_SCHEMA.columns)}
    ranges = []
    for name in columns:
        values = [row[position[name]] for row in rows if math.isfinite(row[position[name]])]
        if values:
            ranges.append(ColumnRange(name, min(values), max(values)))
    return tuple(ranges)


def _outside(ranges: Iterable[tuple[int, ColumnRange]], row: Sequence[float]) -> str | None:
    for position, r in ranges:
        value = row[position]
        slack = SLACK * (r.high - r.low)
        if value < r.low - slack or value > r.high + slack:
            return f"{r.column} = {value:.4g} is outside the training range {r.low:.4g} to {r.high:.4g}"
    return None
