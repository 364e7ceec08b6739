"""Where a model is at home: ranges of machine and size columns over its training rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.rows import FeatureRows
from torch_pim.models.learned.guard import RangeGuard, training_ranges
from torch_pim.models.learned.inputs import MACHINE_COLUMNS, MODEL_SCHEMA
from torch_pim.models.learned.manifest import ColumnRange

SIZE_COLUMNS = ("log_iterations", "log_footprint_bytes")
"""Trees say the same of a nest and of one with ten times its work: beyond the largest it knows the model abstains."""

RANGE_COLUMNS = tuple(name for name in MODEL_SCHEMA.names if name in MACHINE_COLUMNS or name in SIZE_COLUMNS)


def ranges_of(rows: FeatureRows) -> tuple[ColumnRange, ...]:
    """Ranges of RANGE_COLUMNS, for the manifest."""
    return training_ranges(rows.tolist(), RANGE_COLUMNS)


def outside(rows: FeatureRows, ranges: tuple[ColumnRange, ...]) -> NDArray[np.bool_]:
    """Rows that the compiler's guard would refuse to show to the model."""
    guard = RangeGuard(ranges)
    listed = rows.tolist()
    return np.array(
        [guard.machine_problem(row) is not None or guard.nest_problem(row) is not None for row in listed], np.bool_
    )
