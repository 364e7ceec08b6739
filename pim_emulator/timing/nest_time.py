"""The modelled time of one nest on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NestTime:
    """Isolated time of one nest: caches cold, launch included, no transition between sides.

    Components are per core, divided over the cores that work, and overlap into the total. With `core` = compute + l1,

    host:   total = launch + flush + max(core + l2, l2 + llc + dram_latency, bandwidth)
    device: total = launch + flush + max(max(core, dram_latency) + min(core, dram_latency) / outstanding, bandwidth)
    """

    compute_ns: float
    """Arithmetic and instruction issue."""
    l1_ns: float
    """Latency of L1 hits that shows; 0 on the host, whose out-of-order cores hide it."""
    l2_ns: float
    """Misses that the L2 serves; 0 on the device, which has none."""
    llc_ns: float
    """Misses that the last-level cache serves; 0 on the device."""
    dram_latency_ns: float
    """Misses that DRAM serves, overlapped as far as the core can."""
    bandwidth_ns: float
    """Bytes moved over the sustained bandwidth; on the device of the busiest vault."""
    launch_ns: float
    """Start and end of the offload; on the host of the parallel range."""
    flush_ns: float
    """0 in isolation: flushes are charged to transitions between the sides."""
    total_ns: float
    cores_used: int

    @property
    def components(self) -> Mapping[str, float]:
        """Every part by name, without the total."""
        parts = asdict(self)
        del parts["total_ns"], parts["cores_used"]
        return parts


def nest_times(parts: Mapping[str, Floats]) -> tuple[NestTime, ...]:
    """One record per nest from arrays named like its fields."""
    columns = {name: values.tolist() for name, values in parts.items()}
    columns["cores_used"] = [int(value) for value in columns["cores_used"]]
    rows = zip(*columns.values(), strict=True)
    return tuple(NestTime(**dict(zip(columns, row, strict=True))) for row in rows)
