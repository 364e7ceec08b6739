"""Host profiles of all unique nests of a model, measured on this machine or simulated for a host specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.profilers.wall_clock import WallClockProfiler
from torch_pim.compiler_hook.protocols import Profiler
from torch_pim.compiler_hook.target import usable_cores
from torch_pim.features.machines import HostSpec
from torch_pim.features.profile import HostProfile
from torch_pim.pim_emulator.profiler import SimulatedProfiler
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

BATCH = 8
"""Nests that are compiled together; also how often progress is told."""


def wall_profiler(warm: bool, seed: int) -> WallClockProfiler:
    """Measures on this machine with as many threads as compiled models use; profiles carry this CPU's identity."""
    return WallClockProfiler(warm=warm, seed=seed, threads=usable_cores())


def simulated_profiler(host: HostSpec, timing: EmulatorTimingModel, seed: int) -> SimulatedProfiler:
    """Profiles of cold runs as counters of `host` would show them, with the noise of a measurement."""
    return SimulatedProfiler(host, seed, timing=timing)


def profile_nests(
    nests: Sequence[ConcreteNest], profiler: Profiler, progress: Callable[[int, int], None]
) -> tuple[HostProfile, ...]:
    """One profile per nest, in order; `progress` is called with (nests profiled, nests in all)."""
    profiles: list[HostProfile] = []
    for start in range(0, len(nests), BATCH):
        progress(start, len(nests))
        profiles += profiler.profile(nests[start : start + BATCH])
    progress(len(nests), len(nests))
    return tuple(profiles)
