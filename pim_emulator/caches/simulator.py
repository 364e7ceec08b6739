"""All caches of the menu, DRAM rows and vaults over one trace, and what they counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torch_pim.features.machines import LINE_BYTES
from torch_pim.pim_emulator.caches import lru
from torch_pim.pim_emulator.caches.geometry import (
    BANKS,
    CACHE_BYTES,
    SIZE_MASK,
    STREAMS,
    VAULT_COUNTS,
    WAYS,
    set_count,
)


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Events of the counted part of a trace; per-cache tuples follow CACHE_BYTES, misses are lines."""

    loads: int
    stores: int
    load_misses: tuple[int, ...]
    store_misses: tuple[int, ...]
    writebacks: tuple[int, ...]
    """Dirty lines pushed out, and dirty lines left at the end that were not dirty at the start."""
    repeated_misses: tuple[int, ...]
    """Misses on lines that the trace had touched before."""
    filter_misses: int
    """Misses of the 32 KiB cache, which the remaining counts are shares of."""
    sequential_misses: int
    row_hits: int
    first_touches: int
    """Distinct lines touched for the first time."""
    vault_imbalance: tuple[float, ...]
    """Per VAULT_COUNTS: misses of the busiest vault over the mean; 1 without misses."""
    first_touch_imbalance: tuple[float, ...]
    """The same over first touches only: traffic of code that fetches each line once."""
    repeated_imbalance: tuple[float, ...]
    """The same over all misses but the first touches."""

    @property
    def misses(self) -> tuple[int, ...]:
        return tuple(load + store for load, store in zip(self.load_misses, self.store_misses, strict=True))


class CacheSimulator:
    """All caches of the menu, empty after `reset`; `warm` and `count` send a trace through them. Not thread-safe."""

    def __init__(self) -> None:
        sets = [set_count(size) for size in CACHE_BYTES]
        self._bases = np.concatenate([[0], np.cumsum(np.array(sets) * WAYS)]).astype(np.int64)
        self._masks = np.array(sets, dtype=np.int64) - 1
        self._tags = np.empty(int(self._bases[-1]), dtype=np.int64)
        self._streams = np.empty(STREAMS, dtype=np.int64)
        self._seen = np.empty(0, dtype=np.int64)
        self._slots = 0
        self._rows = np.empty(BANKS, dtype=np.int64)
        self._accesses = np.empty(2, dtype=np.int64)
        self._misses = np.empty((len(CACHE_BYTES), 2), dtype=np.int64)
        self._writebacks = np.empty(len(CACHE_BYTES), dtype=np.int64)
        self._again = np.empty(len(CACHE_BYTES), dtype=np.int64)
        self._vaults = np.empty((len(VAULT_COUNTS), 2, max(VAULT_COUNTS)), dtype=np.int64)
        self._events = np.empty(lru.EVENTS, dtype=np.int64)
        self._dirty_before = np.zeros(len(CACHE_BYTES), dtype=np.int64)
        self.reset(0)

    def reset(self, line_limit: int) -> None:
        """Empties everything, for traces that touch at most `line_limit` distinct lines together."""
        self._slots = 1 << max(10, (2 * line_limit).bit_length())
        if self._seen.size < self._slots:
            self._seen = np.empty(self._slots, dtype=np.int64)
        self._seen[: self._slots] = -1
        self._tags[:] = lru.EMPTY
        self._streams[:] = -9
        self._rows[:] = -1
        counters = (self._accesses, self._misses, self._writebacks, self._again, self._vaults, self._events)
        for counter in (*counters, self._dirty_before):
            counter[:] = 0

    def warm(self, trace: NDArray[np.int64]) -> None:
        """Fill the caches with the lines of `trace` without counting."""
        self._feed(trace, 0)
        self._dirty_before = self._dirty()

    def count(self, trace: NDArray[np.int64]) -> None:
        """Send `trace` through the caches and add its events to the counts."""
        self._feed(trace, 1)

    def misses(self) -> tuple[int, ...]:
        """Misses counted so far, per CACHE_BYTES."""
        return _integers(self._misses.sum(axis=1))

    def counts(self) -> CacheCounts:
        """All events counted so far."""
        events = [int(value) for value in self._events]
        return CacheCounts(
            loads=int(self._accesses[0]),
            stores=int(self._accesses[1]),
            load_misses=_integers(self._misses[:, 0]),
            store_misses=_integers(self._misses[:, 1]),
            writebacks=_integers(np.maximum(0, self._writebacks + self._dirty() - self._dirty_before)),
            repeated_misses=_integers(self._again),
            filter_misses=events[lru.FILTER_MISSES],
            sequential_misses=events[lru.SEQUENTIAL_MISSES],
            row_hits=events[lru.ROW_HITS],
            first_touches=events[lru.FIRST_TOUCHES],
            vault_imbalance=_imbalance(self._vaults[:, 0]),
            first_touch_imbalance=_imbalance(self._vaults[:, 1]),
            repeated_imbalance=_imbalance(self._vaults[:, 0] - self._vaults[:, 1]),
        )

    def _feed(self, trace: NDArray[np.int64], count: int) -> None:
        lru.simulate(
            trace, count, self._tags, self._bases, self._masks, self._streams, self._seen[: self._slots],
            self._rows,
            self._accesses, self._misses, self._writebacks, self._again, self._vaults, self._events,
        )  # fmt: skip

    def _dirty(self) -> NDArray[np.int64]:
        return np.array(
            [int(np.count_nonzero(self._tags[a:b] & 1)) for a, b in zip(self._bases, self._bases[1:], strict=False)],
            dtype=np.int64,
        )


def line_limit(trace: NDArray[np.int64]) -> int:
    """Upper bound of the distinct lines that a trace touches."""
    if trace.size == 0:
        return 0
    widest = int(((trace >> 1) & SIZE_MASK).max())
    return trace.size * ((widest - 1) // LINE_BYTES + 2)


def _imbalance(misses: NDArray[np.int64]) -> tuple[float, ...]:
    """Busiest vault over the mean per row of [vault count, vault]; 1 for a row without misses."""
    values = []
    for vaults, row in zip(VAULT_COUNTS, misses, strict=True):
        total = int(row.sum())
        values.append(float(row.max()) * vaults / total if total else 1.0)
    return tuple(values)


def _integers(values: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
