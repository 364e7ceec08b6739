"""The record of one measured nest. It holds no machine: times of every host and device are computed from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES, VAULT_COUNTS


class RecordError(ValueError):
    """A stored measurement is not what this version writes."""


@dataclass(frozen=True, slots=True)
class NestMeasurement:
    """Counts of one cold execution of the whole nest on one core; sampled nests are scaled up. Misses are lines."""

    code_hash: str
    feature_hash: str
    loads: float
    stores: float
    load_misses: tuple[float, ...]
    """Per CACHE_BYTES."""
    store_misses: tuple[float, ...]
    writebacks: tuple[float, ...]
    """Per CACHE_BYTES: dirty lines that leave the cache, those left at the end included."""
    footprint_lines: float
    """Distinct lines touched."""
    sequential_share: float
    """Share of the misses of a 32 KiB cache that follow or precede a recent one by one line."""
    row_hit_share: float
    """Share of those misses that find their 256-byte row still open, with no other core around."""
    vault_imbalance: tuple[float, ...]
    """Per VAULT_COUNTS: busiest vault over the mean, all those misses."""
    footprint_imbalance: tuple[float, ...]
    """The same with each line fetched once."""
    recorded_accesses: int
    """Length of the trace."""
    traced_share: float
    """Counted accesses over all accesses of the nest: 1 for a complete trace, 0 for a nest that was not run."""
    error_estimate: float
    """Relative difference of the misses of the two halves of the counted part; 0 if complete, NaN if unknown."""

    def misses(self) -> tuple[float, ...]:
        """Load and store misses per CACHE_BYTES."""
        return tuple(load + store for load, store in zip(self.load_misses, self.store_misses, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, lists and texts; NaN as null."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> NestMeasurement:
        """Inverse of `to_json`; raises RecordError for anything that `to_json` would not have written."""
        known = {f.name: str(f.type) for f in fields(NestMeasurement)}
        if set(values) != set(known):
            wrong = sorted(set(values) ^ set(known))
            raise RecordError(f"expected the fields of a measurement; missing or unknown: {', '.join(wrong)}")
        record = NestMeasurement(**{name: _typed(name, kind, values[name]) for name, kind in known.items()})
        for name in ("load_misses", "store_misses", "writebacks"):
            if len(getattr(record, name)) != len(CACHE_BYTES):
                raise RecordError(f"{name}: expected {len(CACHE_BYTES)} numbers, found {len(getattr(record, name))}")
        for name in ("vault_imbalance", "footprint_imbalance"):
            if len(getattr(record, name)) != len(VAULT_COUNTS):
                raise RecordError(f"{name}: expected {len(VAULT_COUNTS)} numbers, found {len(getattr(record, name))}")
        return record


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _typed(name: str, kind: str, value: Any) -> Any:
    if kind.startswith("tuple"):
        if not isinstance(value, list):
            raise RecordError(f"{name}: expected a list of numbers, found {value!r}")
        return tuple(_typed(name, "float", item) for item in value)
    if kind == "str" and isinstance(value, str):
        return value
    if kind == "float" and value is None:
        return math.nan
    if kind in ("int", "float") and isinstance(value, int | float) and not isinstance(value, bool):
        if kind == "int" and not isinstance(value, int):
            raise RecordError(f"{name}: expected an integer, found {value!r}")
        return float(value) if kind == "float" else value
    raise RecordError(f"{name}: expected {kind}, found {value!r}")
