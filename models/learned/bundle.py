"""Reading a bundle: a folder with model.json, manifest.json, card.md and, where there are some, residual regressors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torch_pim.features.schema import Schema, SchemaError
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.errors import ChecksumMismatch, ModelMissing, SchemaMismatch, UnsupportedFormat
from torch_pim.models.learned.bundle_writer import (
    CARD_FILE,
    DEVICE_RESIDUAL_FILE,
    HOST_RESIDUAL_FILE,
    MANIFEST_FILE,
    MODEL_FILE,
)
from torch_pim.models.learned.classifier import Classifier, read_classifier
from torch_pim.models.learned.inputs import MODEL_SCHEMA
from torch_pim.models.learned.manifest import Manifest
from torch_pim.models.learned.trees import TreeEnsemble


@dataclass(frozen=True, eq=False)
class Bundle:
    """A checked model, ready to be asked. It holds numbers only: loading one runs no code of the bundle."""

    path: Path
    digest: str
    """sha256 of the manifest, which holds the checksums of all other files."""
    manifest: Manifest
    classifier: Classifier
    host_residual: TreeEnsemble | None
    device_residual: TreeEnsemble | None
    columns: tuple[int, ...]
    """Position in a MODEL_SCHEMA row of each column that the model reads."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bundle:
        """Reads and checks a bundle folder.

        Raises ModelMissing, ChecksumMismatch, SchemaMismatch or UnsupportedFormat; never returns a doubtful model.
        """
        folder = Path(path)
        text = _read(folder, MANIFEST_FILE)
        manifest = Manifest.from_json(text.decode(errors="replace"))
        contents = {name: _read(folder, name) for name in manifest.files}
        for name, content in contents.items():
            found = hashlib.sha256(content).hexdigest()
            if found != manifest.files[name]:
                raise ChecksumMismatch(
                    f"{folder / name} has sha256 {found[:12]}, its manifest says {manifest.files[name][:12]}: the file "
                    "was altered after training; restore it, or write the bundle again with torch-pim train"
                )
        for name in (MODEL_FILE, CARD_FILE):
            if name not in contents:
                raise UnsupportedFormat(f"{folder}: the manifest lists no {name}; write the bundle again")
        columns = _positions(manifest.schema)
        classifier = read_classifier(manifest.kind, _parse(MODEL_FILE, contents[MODEL_FILE]))
        _check_features(MODEL_FILE, classifier, manifest.schema)
        return cls(
            path=folder,
            digest=hashlib.sha256(text).hexdigest(),
            manifest=manifest,
            classifier=classifier,
            host_residual=_residual(HOST_RESIDUAL_FILE, contents, manifest.schema),
            device_residual=_residual(DEVICE_RESIDUAL_FILE, contents, manifest.schema),
            columns=columns,
        )

    @property
    def cost_model(self) -> CostModel:
        """The cost model with the constants that were fitted with this model."""
        return CostModel(self.manifest.cost_constants)

    def select(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """The model's columns of MODEL_SCHEMA rows, shape (rows, model columns)."""
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(MODEL_SCHEMA.columns))
        return np.asarray(table[:, list(self.columns)])

    def scores(self, rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
        """Calibrated probability that PIM is faster, one per MODEL_SCHEMA row."""
        margins = self.classifier.margins(self.select(rows))
        return tuple(self.manifest.calibration(float(margin)) for margin in margins)

    def log_residuals(self, rows: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
        """(host, device) corrections to ln of the cost model's own times, gates applied; 0 without a regressor."""
        table = self.select(rows)
        sides = []
        for trees, gate in (
            (self.host_residual, self.manifest.host_residual_gate),
            (self.device_residual, self.manifest.device_residual_gate),
        ):
            sides.append([0.0] * len(rows) if trees is None else [gate * float(m) for m in trees.margins(table)])
        return tuple(zip(*sides, strict=True))


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise ModelMissing(
            f"{folder / name} cannot be read ({error.strerror}); expected a bundle folder with {MANIFEST_FILE} and the "
            "files it lists; train one with torch-pim train, or give another folder"
        ) from error


def _parse(name: str, content: bytes) -> dict[str, Any]:
    try:
        table = json.loads(content)
    except ValueError as error:
        raise UnsupportedFormat(f"{name} is not JSON: {error}") from error
    if not isinstance(table, dict):
        raise UnsupportedFormat(f"{name} holds a {type(table).__name__}: expected an object")
    return table


def _residual(name: str, contents: dict[str, bytes], schema: Schema) -> TreeEnsemble | None:
    if name not in contents:
        return None
    trees = TreeEnsemble.from_xgboost_json(_parse(name, contents[name]))
    if trees.objective != "reg:squarederror":
        raise UnsupportedFormat(f"{name}: the objective is {trees.objective!r}, expected 'reg:squarederror'")
    _check_features(name, trees, schema)
    return trees


def _positions(schema: Schema) -> tuple[int, ...]:
    try:
        return MODEL_SCHEMA.positions_of(schema)
    except SchemaError as error:
        raise SchemaMismatch(
            f"the model reads columns that this compiler does not compute: {error}; retrain with this version of "
            "torch-pim, or use the version that trained the model"
        ) from error


def _check_features(name: str, model: Classifier, schema: Schema) -> None:
    names = schema.names
    if model.width != len(names) or (model.features and model.features != names):
        raise SchemaMismatch(
            f"{name} was trained on {model.width} columns {', '.join(model.features[:3])}..., its manifest lists "
            f"{len(names)} columns {', '.join(names[:3])}...: both must be the same in the same order"
        )
