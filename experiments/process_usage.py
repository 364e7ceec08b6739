"""Time and memory of this process, for the last line of a command."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """What a command has used so far."""

    wall_time_s: float
    peak_rss_bytes: int | None
    """Largest resident memory of the process; None where the system does not tell."""

    def __str__(self) -> str:
        memory = "" if self.peak_rss_bytes is None else f", peak memory {self.peak_rss_bytes / 1e6:.0f} MB"
        return f"{self.wall_time_s:.1f} s{memory}"


class UsageMeter:
    """Measures from its creation on."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def usage(self) -> ProcessUsage:
        return ProcessUsage(time.perf_counter() - self._start, _peak_rss_bytes())


def _peak_rss_bytes() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    # getrusage counts in KiB, except on macOS, which counts in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
