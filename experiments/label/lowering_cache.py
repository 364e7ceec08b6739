"""Lowered corpus entries on disk: lowering costs as much as tracing, and depends on nothing that an emulator knows."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.experiments.corpus.corpora import Entry
from torch_pim.experiments.label.records import RecordError, decode, encode
from torch_pim.experiments.label.unique_nests import lower_entry
from torch_pim.experiments.whole_file import whole_file
from torch_pim.features.source_digest import source_digest


@dataclass(frozen=True, slots=True)
class LoweringCache:
    """A folder with one JSON file per entry, found by the entry's content and the code that lowers it."""

    folder: Path

    def lower(self, entry: Entry) -> tuple[ConcreteNest, ...]:
        """As `lower_entry`; a file that is missing or damaged is made again. Failures are not remembered."""
        path = self.folder / f"{_key(entry)}.json"
        try:
            return _read(path)
        except (FileNotFoundError, ValueError):
            nests = lower_entry(entry)
        with whole_file(path) as work:
            work.write_text(json.dumps([encode(nest) for nest in nests]), encoding="utf-8")
        return nests


def _read(path: Path) -> tuple[ConcreteNest, ...]:
    stored = json.loads(path.read_text(encoding="utf-8"))
    if not (isinstance(stored, list) and all(isinstance(text, str) for text in stored)):
        raise RecordError(f"{path}: expected a list of records")
    return tuple(decode(ConcreteNest, text) for text in stored)


def _key(entry: Entry) -> str:
    return hashlib.sha256(f"{entry.content} {lowering_version()}".encode()).hexdigest()


@functools.cache
def lowering_version() -> str:
    """sha256 of the sources that lower and of the tested pair of torch and torch-mlir: a change misses no cache."""
    rooms = (
        "torch_pim.features",
        "torch_pim.compiler_hook.frontend",
        "torch_pim.compiler_hook.lowering",
        "torch_pim.compiler_hook.outline",
        "torch_pim.experiments.workloads",
    )
    return source_digest(rooms, f"{version('torch')} {version('torch-mlir')}")
