"""The manifest of a bundle: what a model was trained on, what it may be asked, and the checksums of its files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from torch_pim.features.profile import ORIGINS
from torch_pim.features.schema import Schema, SchemaError
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.errors import ModelError, SchemaMismatch, UnsupportedFormat, did_you_mean
from torch_pim.models.learned.classifier import KINDS, Calibration, Kind

FORMAT = 1
"""Raised whenever a reader of the previous format could not read the new one."""

TEXTS = ("name", "version", "dataset_digest", "emulator_version", "mlflow_run_id")
TABLES = ("versions", "training", "metrics", "files")

SEMVER = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Smallest and largest finite value of a column over the training rows."""

    column: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a model except its numbers; no dates, so that equal models are equal files."""

    name: str
    version: str
    """Semantic version: the major number grows with an incompatible schema, the minor one with a refreshed model."""
    kind: Kind
    schema: Schema
    """The columns that the model reads, in its order: a subset of those the compiler computes."""
    ranges: tuple[ColumnRange, ...]
    """Training range of machine and nest columns; outside of it the model abstains."""
    profile_origins: tuple[str, ...]
    """Origins of profiles that the model was trained with; other profiles are not shown to it."""
    threshold: float
    """Calibrated score from which on a nest goes to PIM."""
    calibration: Calibration
    host_residual_gate: float
    """Share of the host residual that is applied, 0 (none) to 1, chosen by cross-validation."""
    device_residual_gate: float
    cost_constants: CostConstants
    dataset_digest: str
    """sha256 of the data set that the model was trained on."""
    emulator_version: str
    mlflow_run_id: str
    """Empty if the training was not tracked."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Library name -> version at training time."""
    training: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Hyper-parameters, split and seed."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """File name -> sha256 of its bytes. Filled by `write_bundle`."""

    def __post_init__(self) -> None:
        """Raises UnsupportedFormat for values that no writer of this version makes."""
        problems = [
            (bool(SEMVER.fullmatch(self.version)), f"version {self.version!r}: expected three numbers as in '1.0.0'"),
            (self.kind in KINDS, f"kind {self.kind!r}: expected one of {', '.join(KINDS)}"),
            (0.0 < self.threshold < 1.0, f"threshold {self.threshold}: expected a number between 0 and 1"),
            (0.0 <= self.host_residual_gate <= 1.0, f"host_residual_gate {self.host_residual_gate}: expected 0 to 1"),
            (0.0 <= self.device_residual_gate <= 1.0, f"device_residual_gate {self.device_residual_gate}: not 0 to 1"),
            (self.calibration.slope > 0, f"calibration slope {self.calibration.slope}: expected a positive number"),
            (math.isfinite(self.calibration.intercept), "calibration intercept: expected a finite number"),
            (set(self.profile_origins) <= set(ORIGINS), f"profile_origins: expected some of {', '.join(ORIGINS)}"),
        ]
        names = {column.name for column in self.schema.columns}
        for r in self.ranges:
            problems.append((r.column in names, f"range of column {r.column!r}, which the model does not read"))
            problems.append((r.low <= r.high, f"range of column {r.column!r}: {r.low} is above {r.high}"))
        for name in self.files:
            plain = bool(name) and "/" not in name and "\\" not in name and not name.startswith(".")
            problems.append((plain, f"file name {name!r}: expected a plain name inside the bundle"))
        for holds, problem in problems:
            if not holds:
                raise UnsupportedFormat(f"manifest: {problem}")

    def to_json(self) -> str:
        """Text of manifest.json: the same manifest gives the same bytes."""
        table = asdict(self)
        table["schema"] = self.schema.to_json()
        table["format"] = FORMAT
        for name in ("versions", "training", "metrics", "files"):
            table[name] = dict(sorted(getattr(self, name).items()))
        return json.dumps(table, indent=1, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Inverse of `to_json`; raises UnsupportedFormat, or SchemaMismatch if schema and digest disagree."""
        try:
            table = json.loads(text)
        except ValueError as error:
            raise UnsupportedFormat(f"manifest.json is not JSON: {error}") from error
        if not isinstance(table, dict) or table.get("format") != FORMAT:
            found = table.get("format") if isinstance(table, dict) else None
            raise UnsupportedFormat(
                f"bundle format {found!r}: this version reads format {FORMAT}; retrain with this version of torch-pim, "
                "or use the version that wrote the bundle"
            )
        _check_keys(table, {f.name for f in fields(cls)} | {"format"})
        try:
            return cls(
                **{name: _typed(table, name, str) for name in TEXTS},
                **{name: _typed(table, name, dict) for name in TABLES},
                kind=table["kind"],
                schema=Schema.from_json(table["schema"]),
                ranges=tuple(ColumnRange(**entry) for entry in table["ranges"]),
                profile_origins=tuple(table["profile_origins"]),
                threshold=float(table["threshold"]),
                calibration=Calibration(**table["calibration"]),
                host_residual_gate=float(table["host_residual_gate"]),
                device_residual_gate=float(table["device_residual_gate"]),
                cost_constants=CostConstants.from_json(table["cost_constants"]),
            )
        except SchemaError as error:
            raise SchemaMismatch(f"manifest.json: {error}") from error
        except ModelError:
            raise
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise UnsupportedFormat(f"manifest.json: a value has the wrong type: {error}") from error


def _typed(table: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    if not isinstance(table[name], kind):
        raise UnsupportedFormat(f"manifest.json: {name!r} is {table[name]!r}: expected a {kind.__name__}")
    return table[name]


def _check_keys(table: Mapping[str, Any], expected: set[str]) -> None:
    for key in table:
        if key not in expected:
            raise UnsupportedFormat(f"manifest.json: unknown key {key!r}.{did_you_mean(key, expected)}")
    for key in sorted(expected - set(table)):
        raise UnsupportedFormat(f"manifest.json: key {key!r} is missing; write the bundle again with torch-pim train")
