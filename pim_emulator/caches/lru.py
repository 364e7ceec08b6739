"""The compiled inner loops: true-LRU sets, and one pass of a trace through all caches of the menu.

Caches that see the same accesses, have the same ways and nested set indices hold each other's contents, recency order
included (Hill and Smith, 1989, "Evaluating associativity in CPU caches"). So an access that finds its line first in a
small cache finds it first in all larger ones, and the walk up the menu stops there without changing any count.
"""

from __future__ import annotations

import numba
import numpy as np

from torch_pim.pim_emulator.caches.geometry import (
    ADDRESS_SHIFT,
    BANKS,
    FILTER,
    LINE_SHIFT,
    PRIVATE_BYTES,
    ROW_BYTES,
    SHARED_BYTES,
    SIZE_MASK,
    STREAMS,
    VAULT_COUNTS,
    WAYS,
)

EMPTY = -2
"""An unused way. A used one holds `line << 1 | dirty`; -2 matches no line and is not dirty."""

UNCHANGED, HIT, MISS = 0, 1, 2
"""What a look-up found; MISS + 1 when the line that it pushed out was dirty."""

FILTER_MISSES, SEQUENTIAL_MISSES, ROW_HITS, FIRST_TOUCHES = range(4)
EVENTS = 4

_PRIVATE = len(PRIVATE_BYTES)
_SHARED = len(SHARED_BYTES)
_VAULT_BITS = tuple(count.bit_length() - 1 for count in VAULT_COUNTS)
_ROW_SHIFT = ROW_BYTES.bit_length() - 1 - LINE_SHIFT
_BANK_BITS = BANKS.bit_length() - 1


@numba.njit(inline="always")
def touch(tags, base, line, write):  # type: ignore[no-untyped-def]
    """Look up `line` in the set that starts at tags[base], most recent way first, and make it the most recent one."""
    head = tags[base]
    if head >> 1 == line:
        tags[base] = head | write
        return UNCHANGED if tags[base] == head else HIT
    way = 1
    while way < WAYS and tags[base + way] >> 1 != line:
        way += 1
    if way < WAYS:
        entry = tags[base + way] | write
        result = HIT
    else:
        way = WAYS - 1
        entry = line << 1 | write
        result = MISS + (tags[base + way] & 1)
    while way > 0:
        tags[base + way] = tags[base + way - 1]
        way -= 1
    tags[base] = entry
    return result


@numba.njit(inline="always")
def mixed(value):  # type: ignore[no-untyped-def]
    """Well spread bits of an integer (Fibonacci hashing: Knuth, The Art of Computer Programming, vol. 3, 6.4)."""
    product = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((product ^ (product >> np.uint64(32))) & np.uint64(0x7FFFFFFF))


@numba.njit(inline="always")
def permuted(block, bits):  # type: ignore[no-untyped-def]
    """Index of `bits` bits: consecutive blocks visit every index once, strided ones are scattered."""
    return (block ^ mixed(block >> bits)) & ((1 << bits) - 1)


@numba.njit(inline="always")
def shared_index(line):  # type: ignore[no-untyped-def]
    """Set index before masking: higher address bits folded in, so that power-of-two strides use all sets."""
    return line ^ (line >> 11) ^ (line >> 17)


@numba.njit(inline="always")
def first_touch(seen, line):  # type: ignore[no-untyped-def]
    """True when `line` is new to the open-addressing set `seen` (a power of two, never full)."""
    mask = seen.size - 1
    slot = mixed(line) & mask
    while seen[slot] >= 0:
        if seen[slot] == line:
            return False
        slot = (slot + 1) & mask
    seen[slot] = line
    return True


@numba.njit(inline="always")
def sequential(streams, line):  # type: ignore[no-untyped-def]
    """True when `line` follows or precedes the last miss of one of the latest streams; the streams are updated."""
    for i in range(STREAMS):
        if streams[i] == line - 1 or streams[i] == line + 1:
            streams[i] = line
            return True
    for i in range(STREAMS - 1, 0, -1):
        streams[i] = streams[i - 1]
    streams[0] = line
    return False


@numba.njit(cache=True, nogil=True)
def simulate(  # type: ignore[no-untyped-def]
    trace, count, tags, bases, masks, streams, seen, rows, accesses, misses, writebacks, again, vaults, events
):
    """Send a trace through all caches; `count` is 1 to count events, 0 to warm up.

    `accesses` [2], `misses` [cache, 2] (load, store), `writebacks` [cache], `again` [cache] (misses of lines already
    touched in this trace), `vaults` [vault count, 2, vault] (all misses of the filter cache, first touches)
    and `events` are added to. Accesses are counted once, misses once per line.
    """
    for entry in trace:
        write = entry & 1
        size = (entry >> 1) & SIZE_MASK
        address = entry >> ADDRESS_SHIFT
        accesses[write] += count
        for line in range(address >> LINE_SHIFT, ((address + size - 1) >> LINE_SHIFT) + 1):
            filtered = UNCHANGED
            missing = 0
            for cache in range(_PRIVATE):
                found = touch(tags, bases[cache] + (line & masks[cache]) * WAYS, line, write)
                if cache == FILTER:
                    filtered = found
                if found == UNCHANGED:
                    break
                if found >= MISS:
                    missing = cache + 1
                    misses[cache, write] += count
                    writebacks[cache] += count * (found - MISS)
            # The shared caches see the misses, and the stores that hit but changed the place or state of their line:
            # the first store to a line makes it dirty below as well.
            missed = filtered >= MISS
            known = not missed or not first_touch(seen, line)
            if known:
                for cache in range(missing):
                    again[cache] += count
            if not missed and not (write == 1 and filtered == HIT):
                continue
            if missed:
                events[FILTER_MISSES] += count
                if sequential(streams, line):
                    events[SEQUENTIAL_MISSES] += count
                row = line >> _ROW_SHIFT
                bank = permuted(row, _BANK_BITS)
                if rows[bank] == row:
                    events[ROW_HITS] += count
                rows[bank] = row
                if not known:
                    events[FIRST_TOUCHES] += count
                for choice in range(len(_VAULT_BITS)):
                    vault = permuted(row, _VAULT_BITS[choice])
                    vaults[choice, 0, vault] += count
                    if not known:
                        vaults[choice, 1, vault] += count
            index = shared_index(line)
            for shared in range(_SHARED):
                cache = _PRIVATE + shared
                found = touch(tags, bases[cache] + (index & masks[cache]) * WAYS, line, write)
                if found == UNCHANGED:
                    break
                if found >= MISS:
                    writebacks[cache] += count * (found - MISS)
                    if missed:
                        misses[cache, write] += count
                        if known:
                            again[cache] += count
