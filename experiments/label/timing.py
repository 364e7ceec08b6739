"""Times unique nests on all machines, batch by batch, and sets aside what cannot be timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.compiler_hook.protocols import Profiler, TimingModel
from torch_pim.experiments.label.machines import LabelMachines
from torch_pim.experiments.label.unique_nests import Exclusion, UniqueNest
from torch_pim.features.machines import HostSpec
from torch_pim.features.profile import HostProfile

BATCH = 16
"""Nests that are compiled together; also how much work an interruption can lose."""

Floats = NDArray[np.float64]
ProfilerFactory = Callable[[HostSpec], Profiler]


@dataclass(frozen=True, slots=True)
class TimedNest:
    """Times and profiles of one nest, in the order of the machines."""

    nest: UniqueNest
    host_ns: tuple[float, ...]
    device_ns: tuple[float, ...]
    profiles: tuple[HostProfile | None, ...]


class UnusableTimeError(TorchPimError, ValueError):
    """A timing model gave a time that is no label."""


def time_nests(
    nests: Sequence[UniqueNest],
    machines: LabelMachines,
    timing: TimingModel,
    profiler: ProfilerFactory,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[tuple[TimedNest, ...], tuple[Exclusion, ...]]:
    """All nests that could be timed, in order, and an exclusion with the cause for each of the others.

    A batch that fails on purpose (TorchPimError) is repeated nest by nest; any other error is a bug and is raised.
    `progress` is called with (nests done, nests in all) after every batch.
    """
    timed: list[TimedNest] = []
    exclusions: list[Exclusion] = []
    for start in range(0, len(nests), BATCH):
        batch = nests[start : start + BATCH]
        try:
            timed += _time_batch(batch, machines, timing, profiler)
        except TorchPimError:
            for nest in batch:
                try:
                    timed += _time_batch([nest], machines, timing, profiler)
                except TorchPimError as error:
                    message = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
                    exclusions.append(Exclusion(nest.source, nest.identity, "timing", message))
        progress(min(start + BATCH, len(nests)), len(nests))
    return tuple(timed), tuple(exclusions)


def _time_batch(
    batch: Sequence[UniqueNest], machines: LabelMachines, timing: TimingModel, profiler: ProfilerFactory
) -> list[TimedNest]:
    concrete = [nest.concrete for nest in batch]
    host_times = [[t.total_ns for t in timing.host_times(concrete, host)] for host in machines.hosts]
    device_times = [[t.total_ns for t in timing.device_times(concrete, device)] for device in machines.devices]
    profiles = [profiler(host).profile(concrete) for host in machines.hosts]
    timed = []
    for index, nest in enumerate(batch):
        host_ns = tuple(times[index] for times in host_times)
        device_ns = tuple(times[index] for times in device_times)
        for value in (*host_ns, *device_ns):
            if not (math.isfinite(value) and value > 0):
                raise UnusableTimeError(f"time of {value} ns")
        timed.append(TimedNest(nest, host_ns, device_ns, tuple(line[index] for line in profiles)))
    return timed
