"""Digest of the sources of packages, for cache keys and fingerprints that no change of code may miss."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib import resources
from importlib.resources.abc import Traversable


def source_digest(packages: Iterable[str], prefix: str = "") -> str:
    """sha256 of `prefix` and of every Python file in the packages and their sub-packages, by dotted name."""
    found = hashlib.sha256(prefix.encode())
    for package in packages:
        for name, content in sorted(_sources(resources.files(package), package)):
            found.update(f"{name} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()


def _sources(folder: Traversable, name: str) -> list[tuple[str, bytes]]:
    sources: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.name.startswith("__"):
            sources += _sources(entry, f"{name}.{entry.name}")
        elif entry.name.endswith(".py"):
            sources.append((f"{name}.{entry.name}", entry.read_bytes()))
    return sources
