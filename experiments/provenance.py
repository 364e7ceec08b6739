"""What a report was made from: versions, bundle and machines, ready for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch_pim
from torch_pim.compiler_hook.lowering.pipeline import LOWERING_VERSION
from torch_pim.features.machines import DeviceSpec, HostSpec, assumed_fields
from torch_pim.features.vector import FEATURE_VERSION
from torch_pim.models.artifacts import default_bundle_path
from torch_pim.models.errors import ModelError
from torch_pim.models.learned.bundle import Bundle
from torch_pim.pim_emulator.version import EMULATOR_VERSION

_LIBRARIES = ("torch", "torch-mlir", "transformers")


def versions() -> dict[str, str]:
    """Versions that a plan or a modelled time may depend on; `none` for a library that is not installed."""
    own = {
        "torch-pim": torch_pim.__version__,
        "lowering": str(LOWERING_VERSION),
        "features": str(FEATURE_VERSION),
        "emulator": EMULATOR_VERSION,
    }
    return {**own, **{name: _installed(name) for name in _LIBRARIES}}


def bundle_json(path: Path | None) -> dict[str, Any]:
    """Name, version and digest of a bundle (None: the shipped one), or why it cannot be used."""
    folder = path if path is not None else default_bundle_path()
    shipped = path is None
    try:
        bundle = Bundle.load(folder)
    except ModelError as error:
        return {"shipped": shipped, "usable": False, "problem": f"{type(error).__name__}: {error}"}
    manifest = bundle.manifest
    return {
        "shipped": shipped,
        "usable": True,
        "name": manifest.name,
        "version": manifest.version,
        "kind": manifest.kind,
        "digest": bundle.digest,
        "emulator_version": manifest.emulator_version,
        "dataset_digest": manifest.dataset_digest,
    }


def machine_json(spec: HostSpec | DeviceSpec) -> dict[str, Any]:
    """All values of a specification, its identity, and which of the values are assumed."""
    values: Mapping[str, Any] = asdict(spec)
    return {**values, "identity": spec.identity, "assumed": list(assumed_fields(spec))}


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
