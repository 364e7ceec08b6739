"""Counters of one nest on one host, measured or simulated. Unmeasured values are NaN, never 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Origin = Literal["perf", "wall", "simulated", "none"]
ORIGINS: tuple[Origin, ...] = ("perf", "wall", "simulated", "none")

LOCALITY_BYTES = tuple(16 * 1024 * 2**i for i in range(12))
"""Cache sizes of the locality curve: 16 KiB, 32 KiB, ... 32 MiB (8-way LRU, 64-byte lines)."""


@dataclass(frozen=True, slots=True)
class HostProfile:
    """What one execution of a nest did on a host. Counts are per execution of the whole nest."""

    code_hash: str
    host_id: str
    """Identity of the machine (a HostSpec's `identity`, or a real CPU's); another host's profile is not used."""
    origin: Origin
    wall_time_ns: float = math.nan
    warm: bool = False
    """True when `wall_time_ns` is of repeated runs on the same buffers, False when caches were cold."""
    wall_time_spread: float = math.nan
    """(75th - 25th percentile) / median over the repeats."""
    repeats: int = 0
    instructions: float = math.nan
    loads: float = math.nan
    stores: float = math.nan
    l1_misses: float = math.nan
    l2_misses: float = math.nan
    llc_misses: float = math.nan
    dram_bytes: float = math.nan
    ipc: float = math.nan
    locality_curve: tuple[float, ...] = (math.nan,) * len(LOCALITY_BYTES)
    """Misses per access of the traced nest in caches of LOCALITY_BYTES."""

    @property
    def mpki(self) -> float:
        """Last-level misses per thousand instructions; NaN when either is unmeasured."""
        return 1000.0 * self.llc_misses / self.instructions if self.instructions > 0 else math.nan

    @property
    def lfmr(self) -> float:
        """Last-to-first miss ratio: LLC misses / L1 misses (DAMOV, Oliveira et al., 2021)."""
        return self.llc_misses / self.l1_misses if self.l1_misses > 0 else math.nan
