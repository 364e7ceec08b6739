"""How evenly a parallel range splits over cores."""

from __future__ import annotations

import math

from torch_pim.features.nest import LoopNest


def busy_cores(nest: LoopNest, cores: int) -> float:
    """Speedup over one core when each takes a contiguous share: iterations / largest share, at least 1."""
    if not nest.partitionable:
        return 1.0
    iterations = max(1, nest.parallel_trip)
    return iterations / math.ceil(iterations / min(cores, iterations))
