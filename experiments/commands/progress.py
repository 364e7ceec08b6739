"""What a command is doing, on stderr, one line per step with the seconds since it began."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO


class Steps:
    """Call it with a text whenever a new step begins."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._start = clock()

    def __call__(self, text: str) -> None:
        print(f"[{self._clock() - self._start:4.0f} s] {text}", file=self._stream, flush=True)

    def measuring(self, done: int, total: int) -> None:
        """For the emulator: said only while there is something left to measure."""
        if done < total:
            self(f"emulating {total - done} of {total} nests, the others are known")
