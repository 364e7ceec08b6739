"""The side table of everything that got no label: one JSON object per line, beside the label file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from torch_pim.experiments.label.unique_nests import Exclusion
from torch_pim.experiments.whole_file import whole_file


def exclusions_path(labels: Path) -> Path:
    """`labels.parquet` -> `labels.excluded.jsonl`."""
    return labels.with_name(f"{labels.stem}.excluded.jsonl")


def write_exclusions(exclusions: Iterable[Exclusion], path: Path) -> None:
    """Writes the file whole, in the given order."""
    lines = [json.dumps(asdict(exclusion), sort_keys=True) + "\n" for exclusion in exclusions]
    with whole_file(path) as work:
        work.write_text("".join(lines), encoding="utf-8")


def count_causes(exclusions: Iterable[Exclusion]) -> dict[str, int]:
    """Exclusions by cause, sorted by name."""
    return dict(sorted(Counter(exclusion.cause for exclusion in exclusions).items()))
