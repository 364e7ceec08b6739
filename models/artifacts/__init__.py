"""Bundles that ship with Torch-PIM. `default` is written by training and promoted by hand."""

from __future__ import annotations

from pathlib import Path


def default_bundle_path() -> Path:
    """Folder of the bundle that the learned policies use when no other is named; `Bundle.load` reads it."""
    return Path(__file__).parent / "default"
