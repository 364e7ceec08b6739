"""The whole way from a corpus to a label set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.protocols import Device, TimingModel
from torch_pim.experiments.corpus.corpora import Corpus, Entry
from torch_pim.experiments.corpus.held_out import HeldOut
from torch_pim.experiments.label.functional_check import check_entry, is_small
from torch_pim.experiments.label.label_set import LabelHeader, LabelledNest, LabelSet
from torch_pim.experiments.label.machines import LabelMachines
from torch_pim.experiments.label.timing import ProfilerFactory, TimedNest, time_nests
from torch_pim.experiments.label.unique_nests import Exclusion, UniqueNest, lower_entry, unique_nests

Progress = Callable[[str, int, int], None]
"""Called with (stage, done, total)."""


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """What a run depends on beside corpus and machines. Changing any of it changes the label keys."""

    trace_budget: int
    seed: int = 0
    profile_noise: float = 0.05
    checked_per_family: int = 1
    """Small entries per family and element type that are executed and compared with PyTorch."""


@dataclass(frozen=True, slots=True)
class LabelRun:
    """The labels, and everything of the corpus that got none."""

    labels: LabelSet
    exclusions: tuple[Exclusion, ...]
    checked_entries: int


def run_labelling(
    corpus: Corpus,
    held_out: HeldOut,
    held_out_name: str,
    machines: LabelMachines,
    timing: TimingModel,
    profiler: ProfilerFactory,
    device: Device,
    settings: LabelSettings,
    lower: Callable[[Entry], tuple[ConcreteNest, ...]] = lower_entry,
    progress: Progress = lambda stage, done, total: None,
) -> LabelRun:
    """Lowers the corpus, checks samples against PyTorch, times all nests on all machines.

    A family whose sample computes wrong results gets no labels at all.
    """
    wrong, checked = _check(corpus.entries, device, settings, progress)
    kept = [entry for entry in corpus.entries if (entry.family, _dtype(entry)) not in wrong]
    done = [0]

    def lowered(name: str) -> None:
        done[0] += 1
        progress("lowering", done[0], len(kept))

    found = unique_nests(kept, held_out, lower, lowered)
    timed, failures = time_nests(
        found.nests, machines, timing, profiler, lambda count, total: progress("timing", count, total)
    )
    header = LabelHeader(
        corpus=corpus.name,
        corpus_content=corpus.content,
        emulator_version=timing.version,
        trace_budget=settings.trace_budget,
        seed=settings.seed,
        profile_noise=settings.profile_noise,
        held_out=held_out_name,
    )
    exclusions = (*wrong.values(), *found.exclusions, *failures)
    return LabelRun(_label_set(header, timed, machines), exclusions, checked)


def _check(
    entries: Iterable[Entry], device: Device, settings: LabelSettings, progress: Progress
) -> tuple[dict[tuple[str, str], Exclusion], int]:
    samples: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        chosen = samples.setdefault((entry.family, _dtype(entry)), [])
        if is_small(entry) and len(chosen) < settings.checked_per_family:
            chosen.append(entry)
    wanted = [(key, entry) for key, chosen in samples.items() for entry in chosen]
    wrong: dict[tuple[str, str], Exclusion] = {}
    for number, (key, entry) in enumerate(wanted, 1):
        problem = _problem(entry, device, settings.seed)
        if problem is not None:
            wrong[key] = Exclusion(entry.name, "", "wrong result", f"{problem}; the family in this type is left out")
        progress("checking", number, len(wanted))
    return wrong, len(wanted)


def _problem(entry: Entry, device: Device, seed: int) -> str | None:
    try:
        result = check_entry(entry, device, seed)
    except TorchPimError as error:
        return f"cannot be executed ({type(error).__name__}: {str(error).splitlines()[0]})"
    return None if result.passed else f"differs from PyTorch by {result.error:.2g}"


def _dtype(entry: Entry) -> str:
    return entry.name.rsplit("/", 1)[-1]


def _label_set(header: LabelHeader, timed: Sequence[TimedNest], machines: LabelMachines) -> LabelSet:
    def labelled(nest: UniqueNest) -> LabelledNest:
        return LabelledNest(nest.concrete.loop_nest, nest.source, nest.family, nest.group)

    return LabelSet(
        header=header,
        nests=tuple(labelled(t.nest) for t in timed),
        hosts=machines.hosts,
        devices=machines.devices,
        pairs=machines.pairs,
        host_ns=np.array([t.host_ns for t in timed], dtype=np.float64).reshape(len(timed), len(machines.hosts)),
        device_ns=np.array([t.device_ns for t in timed], dtype=np.float64).reshape(len(timed), len(machines.devices)),
        profiles=tuple(t.profiles for t in timed),
    )
