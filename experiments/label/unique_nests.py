"""Lowers corpus entries to unique concrete nests, and says of every nest that is left out why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.compiler_hook.lowered import lower_model
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.experiments.corpus.corpora import Entry
from torch_pim.experiments.corpus.held_out import HeldOut
from torch_pim.experiments.label.label_set import nest_identity

Cause = Literal["lowering", "not partitionable", "held out", "wrong result", "timing"]


@dataclass(frozen=True, slots=True)
class UniqueNest:
    """A concrete nest and the first corpus entry that it occurs in."""

    concrete: ConcreteNest
    source: str
    family: str
    group: str

    @property
    def identity(self) -> str:
        return nest_identity(self.concrete.loop_nest)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A nest, or with an empty `nest` a whole entry, that gets no label."""

    source: str
    nest: str
    cause: Cause
    message: str


@dataclass(frozen=True, slots=True)
class LoweredCorpus:
    """Unique nests sorted by identity, and what was left out, in order of the corpus."""

    nests: tuple[UniqueNest, ...]
    exclusions: tuple[Exclusion, ...]


def lower_entry(entry: Entry) -> tuple[ConcreteNest, ...]:
    """All unique concrete nests of one entry, from shapes alone."""
    module, arguments = entry.build()
    return lower_model(module, arguments).concrete_nests()


def unique_nests(
    entries: Iterable[Entry],
    held_out: HeldOut,
    lower: Callable[[Entry], tuple[ConcreteNest, ...]] = lower_entry,
    progress: Callable[[str], None] = lambda name: None,
) -> LoweredCorpus:
    """Lowers entry by entry. An entry that cannot be lowered is an exclusion, not an error; so the corpus is usable."""
    found: dict[str, UniqueNest] = {}
    exclusions: dict[tuple[str, str], Exclusion] = {}
    for entry in entries:
        progress(entry.name)
        try:
            nests = lower(entry)
        except (TorchPimError, NotImplementedError) as error:
            exclusions[entry.name, ""] = Exclusion(entry.name, "", "lowering", _first_line(error))
            continue
        for concrete in nests:
            unique = UniqueNest(concrete, entry.name, entry.family, entry.group)
            reason = held_out.reason(concrete.loop_nest)
            if not concrete.loop_nest.partitionable:
                exclusion = Exclusion(entry.name, unique.identity, "not partitionable", "stays on the host")
            elif reason is not None:
                exclusion = Exclusion(entry.name, unique.identity, "held out", reason)
            else:
                found.setdefault(unique.identity, unique)
                continue
            exclusions.setdefault(("", unique.identity), exclusion)
    return LoweredCorpus(tuple(found[identity] for identity in sorted(found)), tuple(exclusions.values()))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
