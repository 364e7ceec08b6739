"""Host profiles from the emulator, for machines at hand or not: what counters would show, with measurement noise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.features.machines import HostSpec
from torch_pim.features.profile import LOCALITY_BYTES, HostProfile
from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES
from torch_pim.pim_emulator.measurement.record import NestMeasurement
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

MEASURED = (
    "wall_time_ns", "instructions", "loads", "stores", "l1_misses", "l2_misses", "llc_misses", "dram_bytes",
)  # fmt: skip
"""Values that a run measures; each gets a factor of its own."""


class SimulatedProfiler:
    """Profiles with origin `simulated`, of cold runs of the host variant on `host`.

    Time and counters carry lognormal noise of relative size `noise`, one draw for each nest, host and seed, so that a
    profile knows a label's host time no better than a measurement would. The locality curve is a property of the
    program and exact. `timing` makes (and remembers) the measurements; its seed and budget are its own.
    """

    def __init__(
        self, host: HostSpec, seed: int = 0, noise: float = 0.05, timing: EmulatorTimingModel | None = None
    ) -> None:
        if not 0.0 <= noise < 1.0:
            raise ValueError(f"noise is {noise}; expected a relative size of at least 0 and below 1")
        self._host = host
        self._seed = seed
        self._noise = noise
        self._timing = timing or EmulatorTimingModel(seed=seed)

    def profile(self, nests: Sequence[ConcreteNest]) -> tuple[HostProfile, ...]:
        """One profile per nest; raises CodegenError for a nest that cannot be traced."""
        if not nests:
            return ()
        times = self._timing.host_times(nests, self._host)
        events = self._timing.host_events(nests, self._host)
        measurements = self._timing.measurements(nests)
        profiles = []
        for index, (time, measurement) in enumerate(zip(times, measurements, strict=True)):
            noise = self._factors(measurement)
            wall_time_ns = time.total_ns * noise["wall_time_ns"]
            instructions = float(events.instructions[index]) * noise["instructions"]
            profiles.append(
                HostProfile(
                    code_hash=measurement.code_hash,
                    host_id=self._host.identity,
                    origin="simulated",
                    wall_time_ns=wall_time_ns,
                    repeats=1,
                    instructions=instructions,
                    loads=float(events.loads[index]) * noise["loads"],
                    stores=float(events.stores[index]) * noise["stores"],
                    l1_misses=float(events.l1_misses[index]) * noise["l1_misses"],
                    l2_misses=float(events.l2_misses[index]) * noise["l2_misses"],
                    llc_misses=float(events.llc_misses[index]) * noise["llc_misses"],
                    dram_bytes=float(events.dram_bytes[index]) * noise["dram_bytes"],
                    ipc=instructions / (wall_time_ns * self._host.clock_ghz * time.cores_used),
                    locality_curve=locality_curve(measurement),
                )
            )
        return tuple(profiles)

    def _factors(self, nest: NestMeasurement) -> Mapping[str, float]:
        key = "\n".join([str(self._seed), self._host.identity, nest.code_hash, nest.feature_hash])
        draws = np.random.default_rng(list(hashlib.sha256(key.encode()).digest())).standard_normal(len(MEASURED))
        return {name: math.exp(self._noise * float(draw)) for name, draw in zip(MEASURED, draws, strict=True)}


def locality_curve(measurement: NestMeasurement) -> tuple[float, ...]:
    """Misses per access of the traced nest in caches of LOCALITY_BYTES; zeros for a nest without accesses."""
    accesses = measurement.loads + measurement.stores
    by_size = dict(zip(CACHE_BYTES, measurement.misses(), strict=True))
    return tuple(by_size[size] / accesses if accesses else 0.0 for size in LOCALITY_BYTES)
