"""The memory that instrumented code appends its accesses to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray


class TraceRecorder:
    """A buffer of trace entries at a fixed address, and the count of accesses of the current run.

    Instrumented code never writes outside the buffer: entries past its capacity all go to one spare slot, and the
    count goes on. So the count is exact, and an overflow shows as a count above the capacity. Only one run at a time.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"trace capacity is {capacity}; expected one entry or more")
        self.capacity = capacity
        self._entries = np.zeros(capacity + 1, dtype=np.int64)
        self._count = np.zeros(1, dtype=np.int64)
        self._recording = False

    @property
    def entries_address(self) -> int:
        return int(self._entries.ctypes.data)

    @property
    def count_address(self) -> int:
        return int(self._count.ctypes.data)

    @property
    def count(self) -> int:
        """Accesses made in the current run, recorded or not."""
        return int(self._count[0])

    @property
    def entries(self) -> NDArray[np.int64]:
        """The recorded accesses of the current run, oldest first: a view that the next run overwrites."""
        return self._entries[: min(self.count, self.capacity)]

    @contextmanager
    def run(self) -> Iterator[None]:
        """Starts a run with a count of zero; raises RuntimeError when one is under way."""
        if self._recording:
            raise RuntimeError("a trace is being recorded already; record one at a time")
        self._recording = True
        self._count[0] = 0
        try:
            yield
        finally:
            self._recording = False
