"""The compiled cache simulator against an independent one that is as plain as can be."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES, PRIVATE_BYTES, SHARED_BYTES, VAULT_COUNTS, WAYS
from torch_pim.pim_emulator.caches.simulator import CacheCounts, CacheSimulator, line_limit

Access = tuple[int, int, bool]
"""Address, bytes, is a store."""
SIMULATOR = CacheSimulator()


def trace_of(accesses: Sequence[Access]) -> np.ndarray:
    return np.array([address << 16 | size << 1 | write for address, size, write in accesses], dtype=np.int64)


def simulated(accesses: Sequence[Access], warm: int = 0) -> CacheCounts:
    trace = trace_of(accesses)
    SIMULATOR.reset(line_limit(trace))
    simulator = SIMULATOR
    simulator.warm(trace[:warm])
    simulator.count(trace[warm:])
    return simulator.counts()


class PlainCache:
    """One set-associative LRU cache with dictionaries; the index of a set is given by a function."""

    def __init__(self, nbytes: int, index: Callable[[int], int]) -> None:
        self.set_count = nbytes // (64 * WAYS)
        self.sets: defaultdict[int, OrderedDict[int, bool]] = defaultdict(OrderedDict)
        self.index = index
        self.misses = {False: 0, True: 0}
        self.writebacks = 0

    def touch(self, line: int, write: bool, counted: bool = True) -> tuple[bool, bool]:
        """Returns (missed, became dirty or moved)."""
        chosen = self.sets[self.index(line) % self.set_count]
        missed = line not in chosen
        changed = missed or next(reversed(chosen)) != line or (write and not chosen[line])
        if missed:
            self.misses[write] += counted
            if len(chosen) == WAYS:
                self.writebacks += chosen.popitem(last=False)[1]
        chosen[line] = chosen.get(line, False) or write
        chosen.move_to_end(line)
        return missed, changed

    def dirty(self) -> int:
        return sum(sum(chosen.values()) for chosen in self.sets.values())


def lines_of(access: Access) -> range:
    address, size, _ = access
    return range(address // 64, (address + size - 1) // 64 + 1)


def plain_private(accesses: Sequence[Access]) -> list[PlainCache]:
    caches = [PlainCache(nbytes, lambda line: line) for nbytes in PRIVATE_BYTES]
    for access in accesses:
        for line in lines_of(access):
            for cache in caches:
                cache.touch(line, access[2])
    return caches


def plain_shared(accesses: Sequence[Access]) -> list[PlainCache]:
    """Behind a 32 KiB cache: its misses, and stores that hit in it and change the state of the line."""
    first = [PlainCache(nbytes, lambda line: line) for nbytes in (16 * 1024, 32 * 1024)]
    caches = [PlainCache(nbytes, lambda line: line ^ line >> 11 ^ line >> 17) for nbytes in SHARED_BYTES]
    for access in accesses:
        for line in lines_of(access):
            _, changed_small = first[0].touch(line, access[2])
            missed, changed = first[1].touch(line, access[2])
            if missed or (access[2] and changed and changed_small):
                for cache in caches:
                    cache.touch(line, access[2], counted=missed)
    return caches


accesses = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 1 << 13), st.integers(0, 1 << 20), st.integers(0, 60).map(lambda i: i * (1 << 16))),
        st.sampled_from([1, 4, 8, 32, 64, 128]),
        st.booleans(),
    ),
    max_size=400,
)


@given(accesses)
@settings(max_examples=40, deadline=None)
def test_equal_to_plain_lru_at_every_size(sequence: list[Access]) -> None:
    counts = simulated(sequence)
    caches = plain_private(sequence) + plain_shared(sequence)
    assert counts.load_misses == tuple(c.misses[False] for c in caches)
    assert counts.store_misses == tuple(c.misses[True] for c in caches)
    assert counts.writebacks == tuple(c.writebacks + c.dirty() for c in caches)
    assert (counts.loads, counts.stores) == (
        sum(not write for *_, write in sequence),
        sum(write for *_, write in sequence),
    )


def test_equal_to_plain_lru_on_a_long_conflicting_trace() -> None:
    random = np.random.default_rng(3)
    kinds = random.integers(0, 3, 30_000)
    addresses = np.where(
        kinds == 0, random.integers(0, 1 << 22, kinds.size),
        np.where(kinds == 1, random.integers(0, 64, kinds.size) << 15, np.arange(kinds.size) * 8),
    )  # fmt: skip
    sizes = random.choice([4, 8, 32, 128], kinds.size)
    writes = random.random(kinds.size) < 0.4
    sequence = [(int(a), int(s), bool(w)) for a, s, w in zip(addresses, sizes, writes, strict=True)]
    counts = simulated(sequence)
    caches = plain_private(sequence) + plain_shared(sequence)
    assert counts.load_misses == tuple(c.misses[False] for c in caches)
    assert counts.store_misses == tuple(c.misses[True] for c in caches)
    assert counts.writebacks == tuple(c.writebacks + c.dirty() for c in caches)


def test_wide_access_over_a_line_boundary_misses_twice() -> None:
    assert simulated([(0, 128, False)]).misses[0] == 2
    assert simulated([(32, 128, False)]).misses[0] == 3
    assert simulated([(60, 8, False)]).misses[0] == 2
    assert simulated([(0, 128, False)]).loads == 1


def test_stream_misses_once_per_line_everywhere() -> None:
    counts = simulated([(4 * i, 4, True) for i in range(16 * 1024)])
    assert counts.misses == (1024,) * len(CACHE_BYTES)
    assert counts.writebacks == (1024,) * len(CACHE_BYTES)
    assert counts.first_touches == counts.filter_misses == 1024
    assert counts.sequential_misses == 1023
    assert counts.row_hits == 1024 * 3 // 4, "a 256-byte row holds four lines"
    assert counts.vault_imbalance == (1.0,) * len(VAULT_COUNTS)


def test_cyclic_walk_over_a_full_cache_hits_and_over_twice_its_size_never_does() -> None:
    lines = 16 * 1024 // 64
    fits = simulated([(64 * (i % lines), 4, False) for i in range(4 * lines)])
    assert fits.misses[0] == lines
    thrashes = simulated([(64 * (i % (2 * lines)), 4, False) for i in range(8 * lines)])
    assert thrashes.misses[0] == 8 * lines
    assert thrashes.misses[1] == 2 * lines


def test_power_of_two_column_uses_one_set_of_a_private_cache_but_all_of_a_shared_one() -> None:
    column = [(65536 * i, 4, False) for i in range(256)] * 3
    counts = simulated(column)
    assert counts.misses[0] == 3 * 256
    assert counts.misses[CACHE_BYTES.index(2 * 1024 * 1024)] == 256
    assert max(counts.vault_imbalance) < 3.0, "a hashed vault index spreads a column"


def test_warm_lines_are_not_counted() -> None:
    sequence = [(64 * i, 4, True) for i in range(100)] * 2
    counts = simulated(sequence, warm=100)
    assert counts.misses[0] == 0
    assert counts.writebacks[0] == 0, "lines that were dirty before the counted part are not its own"
    assert (counts.loads, counts.stores) == (0, 100)


@given(accesses)
@settings(max_examples=25, deadline=None)
def test_larger_private_caches_never_miss_more(sequence: list[Access]) -> None:
    counts = simulated(sequence)
    private, shared = counts.misses[: len(PRIVATE_BYTES)], counts.misses[len(PRIVATE_BYTES) :]
    assert list(private) == sorted(private, reverse=True)
    assert list(shared) == sorted(shared, reverse=True)
    assert shared[-1] >= counts.first_touches
    assert counts.first_touches == len({line for access in sequence for line in lines_of(access)})


def test_same_trace_same_counts() -> None:
    sequence = [(int(a), 4, bool(a & 1)) for a in np.random.default_rng(0).integers(0, 1 << 24, 5000)]
    assert simulated(sequence) == simulated(sequence)


@pytest.mark.parametrize("size", [1, 64, 65, 128])
def test_line_limit_bounds_the_lines(size: int) -> None:
    sequence = [(64 * 7 * i + 63, size, False) for i in range(50)]
    touched = len({line for access in sequence for line in lines_of(access)})
    assert touched <= line_limit(trace_of(sequence))
