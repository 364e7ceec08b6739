"""Measurements and static rows of many nests as arrays, so that a machine costs a few vector operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torch_pim.features.nest import LoopNest
from torch_pim.pim_emulator.measurement.record import NestMeasurement
from torch_pim.pim_emulator.timing.curves import at_size
from torch_pim.pim_emulator.timing.nest_time import Floats
from torch_pim.pim_emulator.timing.static_row import CORE_COUNTS, StaticRow, core_lines, static_row


@dataclass(frozen=True, slots=True)
class ContractionColumns:
    """All contractions of all nests; `owner` is the position of the nest of each."""

    owner: NDArray[np.int64]
    batch: Floats
    m: Floats
    n: Floats
    macs: Floats
    element_bytes: Floats
    left_lines: Floats
    right_lines: Floats


@dataclass(frozen=True, slots=True)
class NestTable:
    """One entry (or row) per nest; see NestMeasurement and StaticRow for the meaning of the columns."""

    nests: tuple[LoopNest, ...]
    iterations: Floats
    loop_iterations: Floats
    loads: Floats
    stores: Floats
    misses: Floats
    """[nest, CACHE_BYTES]."""
    writebacks: Floats
    footprint_lines: Floats
    stored_lines: Floats
    sequential_share: Floats
    row_hit_share: Floats
    vault_imbalance: Floats
    """[nest, VAULT_COUNTS]."""
    footprint_imbalance: Floats
    float_adds: Floats
    float_multiplies: Floats
    divides: Floats
    transcendentals: Floats
    integer_adds: Floats
    integer_multiplies: Floats
    integer_divides: Floats
    addresses: Floats
    branches: Floats
    vector_share: Floats
    shuffled_share: Floats
    wide_share: Floats
    strided_share: Floats
    macs: Floats
    """Multiply-adds of all contractions."""
    contractions: ContractionColumns
    core_columns: dict[int, Floats]
    """Remembered lines per core, by number of cores."""

    def of_contractions(self, values: Floats) -> Floats:
        """Sums one value per contraction into one per nest."""
        return np.bincount(self.contractions.owner, weights=values, minlength=len(self.nests)).astype(np.float64)

    def core_lines(self, cores: int) -> Floats:
        """Distinct lines that one of `cores` cores touches."""
        lower = max(count for count in CORE_COUNTS if count <= max(1, cores))
        columns = [count for count in CORE_COUNTS if lower <= count <= 2 * lower]
        for count in columns:
            if count not in self.core_columns:
                self.core_columns[count] = np.array([core_lines(n, count) for n in self.nests], dtype=np.float64)
        return at_size(np.stack([self.core_columns[count] for count in columns], axis=1), columns, cores)


def nest_table(nests: Sequence[LoopNest], measurements: Sequence[NestMeasurement]) -> NestTable:
    """Table of concrete nests and their measurements, in the same order."""
    rows = [static_row(nest) for nest in nests]
    flat = [(owner, c) for owner, row in enumerate(rows) for c in row.contractions]

    def static(name: str) -> Floats:
        return np.array([getattr(row, name) for row in rows], dtype=np.float64)

    def measured(name: str) -> Floats:
        return np.array([getattr(m, name) for m in measurements], dtype=np.float64)

    def contraction(name: str) -> Floats:
        return np.array([getattr(c, name) for _, c in flat], dtype=np.float64)

    names = [name for name in StaticRow.__dataclass_fields__ if name != "contractions"]
    columns = ContractionColumns(
        owner=np.array([owner for owner, _ in flat], dtype=np.int64),
        **{name: contraction(name) for name in ContractionColumns.__dataclass_fields__ if name != "owner"},
    )
    return NestTable(
        nests=tuple(nests),
        misses=np.array([m.misses() for m in measurements], dtype=np.float64),
        writebacks=measured("writebacks"),
        footprint_lines=measured("footprint_lines"),
        sequential_share=measured("sequential_share"),
        row_hit_share=measured("row_hit_share"),
        vault_imbalance=measured("vault_imbalance"),
        footprint_imbalance=measured("footprint_imbalance"),
        macs=np.array([sum(c.macs for c in row.contractions) for row in rows], dtype=np.float64),
        contractions=columns,
        core_columns={},
        **{name: static(name) for name in names},
    )
