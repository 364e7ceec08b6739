"""Lines that tuned code moves into a cache: the measured misses of plain loops, less what blocking would save."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from torch_pim.features.machines import LINE_BYTES
from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES
from torch_pim.pim_emulator.timing.curves import at_size, kept_share
from torch_pim.pim_emulator.timing.nest_time import Floats
from torch_pim.pim_emulator.timing.table import NestTable

CLEARLY_STRIDED = 0.1
"""Share of strided accesses from which a nest counts as a layout walk altogether; below it counts in proportion."""

PACKED_SEQUENTIAL = 0.9
"""Share of the misses of blocked code that follow their neighbour: it walks along packed tiles. Assumed."""


class CacheSizeWarning(UserWarning):
    """A machine has a cache that is smaller or larger than all simulated ones."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Lines per execution of the whole nest, over all cores."""

    fetched: Floats
    written_back: Floats
    blocked_share: Floats
    """Share of the traffic that comes from blocked code, which fetches its lines in packed tiles."""


def tuned_traffic(table: NestTable, cache_bytes: float, cores: int) -> Traffic:
    """Traffic of one cache level: private caches of `cores` cores, or with cores = 1 a cache that all share.

    Contractions are tiled with square tiles of which three fill the cache (the bound of Hong and Kung, 1981, up to a
    constant), strided walks are blocked so that each line is fetched once, and private caches fetch what several
    cores use once per core. Everything else misses as the traced plain loops do.
    """
    measured = at_size(table.misses, CACHE_BYTES, cache_bytes)
    written = at_size(table.writebacks, CACHE_BYTES, cache_bytes)
    contracted = contraction_share(table)
    walked = (table.strided_share / CLEARLY_STRIDED).clip(0.0, 1.0) * (1.0 - contracted)

    plain = measured
    if cores > 1:
        plain = np.maximum(measured, table.core_lines(cores) * np.minimum(cores, table.iterations))
    tiled = np.minimum(plain, _tiled_lines(table, cache_bytes, cores))
    blocked = walked + contracted
    fetched = (1.0 - blocked) * plain + walked * np.minimum(measured, table.footprint_lines) + contracted * tiled
    once = np.minimum(written, table.stored_lines)
    return Traffic(fetched, np.minimum((1.0 - blocked) * written + blocked * once, fetched), blocked)


def check_cache(machine: str, field: str, cache_bytes: int) -> None:
    """Warns (CacheSizeWarning) about a cache beyond the ends of the simulated menu, which stand in for it."""
    nearest = min(max(cache_bytes, CACHE_BYTES[0]), CACHE_BYTES[-1])
    if nearest != cache_bytes:
        warnings.warn(
            f"{machine}: {field} = {cache_bytes} is outside the simulated caches and counts as {nearest} bytes",
            CacheSizeWarning,
            stacklevel=3,
        )


def contraction_share(table: NestTable) -> Floats:
    """Share of a nest's loads that are operands of contractions, two per multiply-add."""
    operands = 2.0 * table.macs
    share: Floats = operands / np.maximum(1.0, operands + table.loads)
    return share


def _tiled_lines(table: NestTable, cache_bytes: float, cores: int) -> Floats:
    """Lines that ideally tiled contractions fetch, with the rest of the nest's memory fetched once.

    An operand is fetched once per tile of the dimension that it does not have, or once in all as far as it fits in
    half of the cache. Cores beyond the batch split the result into near-square parts.
    """
    c = table.contractions
    edge = np.sqrt(cache_bytes / (3.0 * c.element_bytes))
    split = np.maximum(1.0, cores / np.maximum(1.0, c.batch))
    split = np.minimum(split, np.minimum(c.m * c.n, table.iterations[c.owner]))
    columns = np.clip(np.sqrt(split * c.n / c.m), np.maximum(1.0, split / c.m), np.minimum(split, c.n))
    rows = split / columns
    lines = c.left_lines * _passes(c.n, edge, columns, c.left_lines / c.batch, cache_bytes) + c.right_lines * _passes(
        c.m, edge, rows, c.right_lines / c.batch, cache_bytes
    )
    others = np.maximum(0.0, table.footprint_lines - table.of_contractions(c.left_lines + c.right_lines))
    return np.maximum(table.footprint_lines, table.of_contractions(lines) + others)


def _passes(size: Floats, edge: Floats, parts: Floats, operand_lines: Floats, cache_bytes: float) -> Floats:
    """How often an operand is fetched: once per core that needs it, and again for each tile beyond the first."""
    tiles = np.maximum(1.0, size / parts / edge)
    fits = kept_share(operand_lines * LINE_BYTES, cache_bytes / 2.0)
    passes: Floats = parts * (1.0 + (tiles - 1.0) * (1.0 - fits))
    return passes
