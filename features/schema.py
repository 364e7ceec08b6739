"""The ordered list of feature columns that a data set, a model and the compiler must agree on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from torch_pim.features.suggest import did_you_mean


class SchemaError(ValueError):
    """Two schemas do not fit, or a stored schema is damaged; names the column and the mend."""


@dataclass(frozen=True, slots=True)
class FeatureColumn:
    """One feature. All values are 64-bit floats; NaN means not measured."""

    name: str
    dtype: Literal["float64"]
    unit: str
    """E.g. `log2(1+bytes)`, `share` (0 to 1), `flag` (0 or 1), `per iteration`."""
    description: str


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order. `version` rises when the meaning of a column changes while its name and unit stay."""

    version: int
    columns: tuple[FeatureColumn, ...]

    def __post_init__(self) -> None:
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaError(f"columns named twice: {', '.join(twice)}; expected distinct names")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def sha256(self) -> str:
        """Digest of version and of each column's name, type and unit, in order; descriptions do not count."""
        text = json.dumps([self.version, [[c.name, c.dtype, c.unit] for c in self.columns]])
        return hashlib.sha256(text.encode()).hexdigest()

    def positions_of(self, wanted: Schema) -> tuple[int, ...]:
        """Where each column of `wanted` (e.g. a model's subset) stands in this schema, for picking values in its order.

        Raises SchemaError for another version, and for a column that is missing or has another type or unit.
        """
        if wanted.version != self.version:
            raise SchemaError(f"schema version {wanted.version} is wanted, but features have version {self.version}")
        places = {name: place for place, name in enumerate(self.names)}
        for column in wanted.columns:
            if column.name not in places:
                raise SchemaError(f"feature {column.name!r} is missing{did_you_mean(column.name, self.names)}")
            ours = self.columns[places[column.name]]
            if (ours.dtype, ours.unit) != (column.dtype, column.unit):
                raise SchemaError(
                    f"feature {column.name!r} is {ours.dtype} in {ours.unit}; wanted {column.dtype} in {column.unit}"
                )
        return tuple(places[name] for name in wanted.names)

    def subset(self, names: Iterable[str]) -> Schema:
        """The named columns, in the order of this schema; raises SchemaError for a name that is not there."""
        wanted = set(names)
        for name in sorted(wanted.difference(self.names)):
            raise SchemaError(f"feature {name!r} is unknown{did_you_mean(name, self.names)}")
        return Schema(self.version, tuple(column for column in self.columns if column.name in wanted))

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, with the digest."""
        return {"version": self.version, "sha256": self.sha256, "columns": [asdict(c) for c in self.columns]}

    @staticmethod
    def from_json(data: Any) -> Schema:
        """Reads `to_json` back; raises SchemaError for other keys, wrong types or a digest that does not match."""
        _check_object(data, ("version", "sha256", "columns"), "schema")
        version, stored, entries = data["version"], data["sha256"], data["columns"]
        if not isinstance(version, int) or isinstance(version, bool) or not isinstance(entries, list):
            raise SchemaError("schema: expected an integer 'version' and a list 'columns'")
        schema = Schema(version, tuple(_column(entry) for entry in entries))
        if stored != schema.sha256:
            raise SchemaError(
                f"schema: sha256 is {stored!r}, but the columns give {schema.sha256!r}: the file was changed by hand; "
                "write it again with the program that made it"
            )
        return schema


def _column(entry: Any) -> FeatureColumn:
    names = tuple(f.name for f in fields(FeatureColumn))
    _check_object(entry, names, "schema column")
    for name in names:
        if not isinstance(entry[name], str):
            raise SchemaError(f"schema column: {name!r} is {entry[name]!r}; expected a text")
    if entry["dtype"] != "float64":
        raise SchemaError(f"schema column {entry['name']!r}: dtype is {entry['dtype']!r}; expected 'float64'")
    return FeatureColumn(entry["name"], "float64", entry["unit"], entry["description"])


def _check_object(data: Any, keys: tuple[str, ...], what: str) -> None:
    if not isinstance(data, dict):
        raise SchemaError(f"{what}: expected a JSON object, got {type(data).__name__}")
    for key in data:
        if key not in keys:
            raise SchemaError(f"{what}: unknown key {key!r}{did_you_mean(key, keys)}")
    for key in keys:
        if key not in data:
            raise SchemaError(f"{what}: key {key!r} is missing; expected {', '.join(keys)}")
