"""The emulator as a TimingModel: modelled times of nests on any host and any device from one trace of each nest."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.pim_emulator.measurement.library import MeasurementLibrary, Progress
from torch_pim.pim_emulator.measurement.record import NestMeasurement
from torch_pim.pim_emulator.measurement.store import MeasurementStore
from torch_pim.pim_emulator.timing.host import HostEvents, host_events, host_times
from torch_pim.pim_emulator.timing.nest_time import NestTime
from torch_pim.pim_emulator.timing.pim import device_times
from torch_pim.pim_emulator.timing.table import NestTable, nest_table
from torch_pim.pim_emulator.version import EMULATOR_VERSION

DEFAULT_TRACE_BUDGET = 1_000_000
"""Accesses per nest. Nests with no more are traced completely."""

REMEMBERED_SEQUENCES = 8
"""Sequences of nests whose tables a model keeps, so that another machine costs next to nothing."""

__all__ = ["DEFAULT_TRACE_BUDGET", "EMULATOR_VERSION", "EmulatorTimingModel"]


@dataclass(frozen=True, slots=True)
class _Measured:
    """A sequence of nests with all that times need."""

    nests: tuple[ConcreteNest, ...]
    measurements: tuple[NestMeasurement, ...]
    table: NestTable


class EmulatorTimingModel:
    """Isolated times of nests with cold caches. Equal nests, budget and seed give equal times in every process.

    `cache_dir` keeps measurements between processes; None keeps them for this process only. `progress` is called with
    (nests measured, nests in all) while measuring.
    """

    version = EMULATOR_VERSION

    def __init__(
        self,
        trace_budget: int = DEFAULT_TRACE_BUDGET,
        seed: int = 0,
        cache_dir: str | os.PathLike[str] | None = None,
        progress: Progress = lambda done, total: None,
    ) -> None:
        if trace_budget < 1:
            raise ValueError(f"trace_budget is {trace_budget}; expected a positive number of accesses per nest")
        if seed < 0:
            raise ValueError(f"seed is {seed}; expected zero or more")
        store = MeasurementStore(cache_dir) if cache_dir is not None else None
        self._library = MeasurementLibrary(trace_budget, seed, store)
        self._progress = progress
        self._measured: OrderedDict[tuple[int, ...], _Measured] = OrderedDict()

    def measurements(self, nests: Sequence[ConcreteNest]) -> tuple[NestMeasurement, ...]:
        """What each nest does to memory, measured once per unique nest; raises CodegenError."""
        return self._of(nests).measurements if nests else ()

    def host_times(self, nests: Sequence[ConcreteNest], host: HostSpec) -> tuple[NestTime, ...]:
        """Times of tuned host code, one per nest; raises CodegenError for a nest that cannot be traced."""
        return host_times(self._of(nests).table, host) if nests else ()

    def device_times(self, nests: Sequence[ConcreteNest], device: DeviceSpec) -> tuple[NestTime, ...]:
        """Times of tuned PIM code, one per nest, also for nests that the device does not support."""
        return device_times(self._of(nests).table, device) if nests else ()

    def host_events(self, nests: Sequence[ConcreteNest], host: HostSpec) -> HostEvents:
        """What the host's counters would show, one entry per nest; `nests` must not be empty."""
        return host_events(self._of(nests).table, host)

    def _of(self, nests: Sequence[ConcreteNest]) -> _Measured:
        # By identity: hashing the records takes longer than the times. The nests are kept, so no id is used again.
        key = tuple(id(nest) for nest in nests)
        if key not in self._measured:
            measurements = self._library.measurements(nests, self._progress)
            table = nest_table([nest.loop_nest for nest in nests], measurements)
            self._measured[key] = _Measured(tuple(nests), measurements, table)
            while len(self._measured) > REMEMBERED_SEQUENCES:
                self._measured.popitem(last=False)
        self._measured.move_to_end(key)
        return self._measured[key]
