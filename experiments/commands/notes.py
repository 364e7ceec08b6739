"""What a user must know about a run beside its result: warnings of Torch-PIM, said once each, without source lines."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Fills the list with the messages of Torch-PIM's own warnings when the block ends; others are shown as usual."""
    from torch_pim.compiler_hook.cache_folder import CacheFolderWarning
    from torch_pim.compiler_hook.graph_compiler import FallbackWarning
    from torch_pim.models.errors import ModelWarning
    from torch_pim.pim_emulator.measurement.store import DamagedMeasurementWarning

    own = (CacheFolderWarning, DamagedMeasurementWarning, FallbackWarning, ModelWarning)
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        for category in own:
            warnings.simplefilter("always", category)
        yield notes
    for warning in caught:
        if not issubclass(warning.category, own):
            warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)
        elif str(warning.message) not in notes:
            notes.append(str(warning.message))


def print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
