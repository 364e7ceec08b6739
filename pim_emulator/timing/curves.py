"""Values between the points that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch_pim.pim_emulator.timing.nest_time import Floats


def at_size(values: Floats, sizes: Sequence[int], size: float) -> Floats:
    """Columns of `values` [nest, size] interpolated linearly in the logarithm of the size, the ends held."""
    if size <= sizes[0]:
        return values[:, 0]
    for index in range(1, len(sizes)):
        if size <= sizes[index]:
            share = math.log(size / sizes[index - 1]) / math.log(sizes[index] / sizes[index - 1])
            return (1.0 - share) * values[:, index - 1] + share * values[:, index]
    return values[:, -1]


def kept_share(working_set_bytes: Floats, capacity_bytes: float) -> Floats:
    """Share of a working set's reuse that survives in a cache: 1 / (1 + (working set / capacity) ** 6).

    A smooth step, because real sizes sit exactly on capacities.
    """
    filled = (working_set_bytes / capacity_bytes).clip(0.0, 1e6)
    result: Floats = 1.0 / (1.0 + filled**6)
    return result
