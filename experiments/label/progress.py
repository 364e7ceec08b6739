"""Progress of long work on stderr: one line that is rewritten on a terminal, a line per tenth elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO


class ProgressLine:
    """Call it with (stage, done, total); it adds the time left, estimated from the stage's own pace."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._stage = ""
        self._started = 0.0
        self._shown = -1

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage, self._started, self._shown = stage, self._clock(), -1
        terminal = self._stream.isatty()
        tenth = 10 * done // max(1, total)
        if not terminal and tenth == self._shown:
            return
        self._shown = tenth
        elapsed = self._clock() - self._started
        left = elapsed / done * (total - done) if done else 0.0
        text = f"{stage}: {done} of {total}" + (f", {duration(left)} left" if done < total and done else "")
        if terminal:
            self._stream.write(f"\r\x1b[K{text}" + ("\n" if done >= total else ""))
        else:
            self._stream.write(text + "\n")
        self._stream.flush()


def duration(seconds: float) -> str:
    """E.g. `45 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
