"""How evenly a parallel range splits over cores."""

from __future__ import annotations

import math

from torch_pim.features.nest import LoopNest


def largest_share(nest: LoopNest, cores: int) -> int:
    """Iterations of the parallel range on the busiest core; all of them for a nest that cannot be split."""
    iterations = max(1, nest.parallel_trip)
    return math.ceil(iterations / min(cores, iterations)) if nest.partitionable else iterations


def busy_cores(nest: LoopNest, cores: int) -> float:
    """Speedup over one core when each takes a contiguous share: iterations / largest share, at least 1."""
    return max(1, nest.parallel_trip) / largest_share(nest, cores)


def used_cores(nest: LoopNest, cores: int) -> int:
    """Cores that get any iteration."""
    return min(cores, max(1, nest.parallel_trip)) if nest.partitionable else 1
