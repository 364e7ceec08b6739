"""Sizes of the simulated caches and the layout of a trace entry."""

from __future__ import annotations

from torch_pim.features.machines import LINE_BYTES

WAYS = 8
"""Associativity of every simulated cache."""

PRIVATE_BYTES = tuple(16 * 1024 * 2**i for i in range(7))
"""16 KiB .. 1 MiB: set index = low bits of the line number, as in L1 and L2 caches."""

SHARED_BYTES = tuple(2 * 1024 * 1024 * 2**i for i in range(6))
"""2 MiB .. 64 MiB: hashed set index, as in shared last-level caches."""

CACHE_BYTES = PRIVATE_BYTES + SHARED_BYTES
FILTER = PRIVATE_BYTES.index(32 * 1024)
"""The cache whose misses reach the shared caches, the DRAM rows and the vaults."""

LINE_SHIFT = LINE_BYTES.bit_length() - 1

VAULT_COUNTS = (8, 16, 32, 64, 128)
"""Numbers of vaults for which the imbalance is measured."""

ROW_BYTES = 256
"""DRAM row and vault interleave of a Hybrid Memory Cube (HMC specification 2.1, 2014: maximum block size 256 B)."""

BANKS = 512
"""Banks whose open rows are tracked: 32 vaults of 16 banks (HMC specification 2.1, 2014, 8 GB cube)."""

STREAMS = 16
"""Sequential streams that are followed at once to tell a sequential miss, as a hardware prefetcher would."""

ADDRESS_SHIFT = 16
SIZE_MASK = (1 << (ADDRESS_SHIFT - 1)) - 1
MAXIMUM_ACCESS_BYTES = SIZE_MASK
"""A trace entry is `address << 16 | bytes << 1 | is_write` in 64 bits."""


def set_count(cache_bytes: int) -> int:
    return cache_bytes // (LINE_BYTES * WAYS)
