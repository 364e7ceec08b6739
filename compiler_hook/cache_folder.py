"""The one folder for what may be deleted at any time: compiled kernels, lowered programs, traces."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ENVIRONMENT_VARIABLE = "TORCH_PIM_CACHE_DIR"


class CacheFolderWarning(UserWarning):
    """The cache folder cannot be written; a temporary folder stands in until the process ends."""


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """The configured cache folder and whether it can be used."""

    path: Path
    source: Literal["environment", "user"]
    """Named by TORCH_PIM_CACHE_DIR, or the user's own cache folder of this platform."""
    problem: str | None
    """Why it cannot be written; None if it can."""


def find_cache_folder() -> CacheFolder:
    """The configured folder, created if need be. Never raises for a folder that cannot be written."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        path = Path(named).expanduser().absolute()
        return CacheFolder(path, "environment", _problem(path))
    import platformdirs

    path = Path(platformdirs.user_cache_dir("torch-pim", appauthor=False))
    return CacheFolder(path, "user", _problem(path))


def cache_folder(part: str) -> Path:
    """An existing, writable folder for one kind of cached file, e.g. `kernels`.

    Where the configured folder cannot be written, warns once (CacheFolderWarning) and uses a temporary folder that
    goes with the process.
    """
    found = find_cache_folder()
    root = found.path if found.problem is None else _temporary_folder(found.path, found.problem)
    folder = root / part
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _problem(path: Path) -> str | None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return None
    except OSError as error:
        return error.strerror or str(error)


@cache
def _temporary_folder(wanted: Path, problem: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="torch-pim-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warnings.warn(
        f"the cache folder {wanted} cannot be written ({problem}); using {folder} until this process ends. "
        f"Set {ENVIRONMENT_VARIABLE} to a folder that can be written",
        CacheFolderWarning,
        stacklevel=3,
    )
    return folder
