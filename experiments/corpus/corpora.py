"""Corpora by name. A corpus is frozen: a change of its content is a new version with a new name."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.experiments.corpus.entry import CorpusEntry
from torch_pim.experiments.corpus.families import contractions, elementwise, images, movement, reductions
from torch_pim.experiments.corpus.networks import NETWORKS, NetworkEntry

Entry = CorpusEntry | NetworkEntry


@dataclass(frozen=True)
class Corpus:
    """A named list of entries; `content` is the sha256 of all of them in order."""

    name: str
    make: Callable[[], tuple[Entry, ...]]

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return self.make()

    def every(self, step: int) -> Corpus:
        """Every step-th entry, as a corpus with a name and content of its own."""
        return self if step == 1 else Corpus(f"{self.name} every {step}", lambda: self.entries[::step])

    @cached_property
    def content(self) -> str:
        return hashlib.sha256("\n".join(entry.content for entry in self.entries).encode()).hexdigest()


def _nests_v0() -> tuple[Entry, ...]:
    kinds = (elementwise, reductions, contractions, images, movement)
    families = [family for kind in kinds for family in kind.FAMILIES]
    return (*(entry for family in families for entry in family.entries()), *NETWORKS)


CORPORA = {"nests-v0": Corpus("nests-v0", _nests_v0)}


def get_corpus(name: str) -> Corpus:
    """The corpus of that name; raises OptionError with the known names."""
    if name in CORPORA:
        return CORPORA[name]
    close = difflib.get_close_matches(name, CORPORA, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(CORPORA)}"
    raise OptionError(f"no corpus {name!r}: {hint}")
