"""Measurements on disk, one file each, found by what they were made from."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from torch_pim.compiler_hook import codegen
from torch_pim.features import analysis
from torch_pim.pim_emulator import caches, measurement, tracing
from torch_pim.pim_emulator.measurement.record import NestMeasurement, RecordError
from torch_pim.pim_emulator.version import EMULATOR_VERSION

_IMPLEMENTATION = (codegen, analysis, caches, measurement, tracing)


class DamagedMeasurementWarning(UserWarning):
    """A stored measurement cannot be used and is made again."""


@cache
def implementation_digest() -> str:
    """sha256 of the sources of tracing, caches, code generation and static analysis."""
    digest = hashlib.sha256()
    for package in _IMPLEMENTATION:
        for path in sorted(Path(next(iter(package.__path__))).rglob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class MeasurementKey:
    """All that a measurement depends on."""

    code_hash: str
    feature_hash: str
    trace_budget: int
    seed: int
    emulator_version: str = EMULATOR_VERSION
    implementation: str = field(default_factory=implementation_digest)
    """Digest of the code that makes measurements: what an older state of it wrote is not found."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def digest(self) -> str:
        """sha256 of the key, the name of its file."""
        return hashlib.sha256(_canonical(self.to_json())).hexdigest()


class MeasurementStore:
    """A folder of JSON files that several processes may share.

    A file is written under another name and moved into place, so readers see whole files only, also after a kill.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, key: MeasurementKey) -> Path:
        return self.folder / key.digest[:2] / f"{key.digest}.json"

    def get(self, key: MeasurementKey) -> NestMeasurement | None:
        """The stored measurement; None when there is none or, after a DamagedMeasurementWarning, it is unusable."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _parse(content, key)
        except (RecordError, ValueError) as error:
            warnings.warn(
                f"{path} is damaged ({error}); the nest is measured again", DamagedMeasurementWarning, stacklevel=2
            )
            return None

    def put(self, key: MeasurementKey, measurement: NestMeasurement) -> None:
        """Store or replace a measurement."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        body = {"key": key.to_json(), "measurement": measurement.to_json()}
        content = _canonical({**body, "sha256": hashlib.sha256(_canonical(body)).hexdigest()})
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _parse(content: bytes, key: MeasurementKey) -> NestMeasurement:
    value = json.loads(content)
    if not isinstance(value, dict) or set(value) != {"key", "measurement", "sha256"}:
        raise RecordError("expected the entries key, measurement and sha256")
    body = {name: value[name] for name in ("key", "measurement")}
    if hashlib.sha256(_canonical(body)).hexdigest() != value["sha256"]:
        raise RecordError("its checksum is wrong")
    if value["key"] != key.to_json():
        raise RecordError("it belongs to another nest")
    return NestMeasurement.from_json(value["measurement"])
