"""Writing a bundle: whole or not at all, and the same content as the same bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torch_pim.models.learned.manifest import Manifest

MODEL_FILE = "model.json"
CARD_FILE = "card.md"
HOST_RESIDUAL_FILE = "host_residual.json"
DEVICE_RESIDUAL_FILE = "device_residual.json"
MANIFEST_FILE = "manifest.json"


def write_bundle(
    path: str | os.PathLike[str],
    manifest: Manifest,
    *,
    model: bytes,
    card: str,
    host_residual: bytes | None = None,
    device_residual: bytes | None = None,
) -> Path:
    """Writes the folder `path`, replacing a bundle that is there; returns it.

    `model` is XGBoost's JSON (`bytes(booster.save_raw("json"))`) or `LogisticModel.to_json().encode()`, as
    `manifest.kind` says; the residuals are XGBoost regressors of ln(time / cost-model time). The manifest's `files` are
    filled in here. The finished folder is read back before it takes the place of the old one, so that nothing is ever
    written that cannot be loaded: raises what `Bundle.load` raises.
    """
    from torch_pim.models.learned.bundle import Bundle

    contents: dict[str, bytes] = {MODEL_FILE: model, CARD_FILE: card.encode()}
    if host_residual is not None:
        contents[HOST_RESIDUAL_FILE] = host_residual
    if device_residual is not None:
        contents[DEVICE_RESIDUAL_FILE] = device_residual
    complete = replace(manifest, files=checksums(contents))
    contents[MANIFEST_FILE] = complete.to_json().encode()

    target = Path(path).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not (target / MANIFEST_FILE).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} exists and is no bundle: give another path, or remove it first")
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        fresh = work / "new"
        fresh.mkdir()
        for name, content in contents.items():
            (fresh / name).write_bytes(content)
        Bundle.load(fresh)
        if target.exists():
            os.replace(target, work / "old")
        os.replace(fresh, target)
    except BaseException:
        if (work / "old").exists() and not target.exists():
            os.replace(work / "old", target)
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def checksums(contents: Mapping[str, bytes]) -> dict[str, str]:
    """sha256 of each file's bytes, by name."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(contents.items())}
