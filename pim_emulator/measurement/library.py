"""Measurements of many nests: remembered, read from disk, or made in batches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.pim_emulator.caches.simulator import CacheSimulator
from torch_pim.pim_emulator.measurement.measure import measure
from torch_pim.pim_emulator.measurement.record import NestMeasurement
from torch_pim.pim_emulator.measurement.store import MeasurementKey, MeasurementStore
from torch_pim.pim_emulator.tracing.batch import TracedBatch
from torch_pim.pim_emulator.tracing.recorder import TraceRecorder

BATCH = 32
"""Nests that are compiled in one module."""

REMEMBERED = 16_384
"""Measurements that the process keeps, whoever asked for them; the least recently used go first."""

Progress = Callable[[int, int], None]
"""Called with (unique nests done, unique nests in all)."""

_remembered: OrderedDict[MeasurementKey, NestMeasurement] = OrderedDict()
_lock = threading.RLock()


class MeasurementLibrary:
    """Yields the measurement of any nest at one trace budget and seed."""

    def __init__(self, trace_budget: int, seed: int, store: MeasurementStore | None) -> None:
        self._trace_budget = trace_budget
        self._seed = seed
        self._store = store
        self._recorder: TraceRecorder | None = None
        self._simulator: CacheSimulator | None = None

    def key(self, nest: ConcreteNest) -> MeasurementKey:
        code_hash, feature_hash = nest.key
        return MeasurementKey(code_hash, feature_hash, self._trace_budget, self._seed)

    def measurements(
        self, nests: Sequence[ConcreteNest], progress: Progress = lambda done, total: None
    ) -> tuple[NestMeasurement, ...]:
        """One per nest, in order; raises CodegenError naming nests that cannot be traced.

        Only one thread measures at a time. What is finished stays finished when a later batch fails.
        """
        keys = [self.key(nest) for nest in nests]
        unique = dict(zip(keys, nests, strict=True))
        with _lock:
            found = {key: known for key in unique if (known := self._known(key)) is not None}
            missing = [(key, nest) for key, nest in unique.items() if key not in found]
            progress(len(found), len(unique))
            for start in range(0, len(missing), BATCH):
                for key, measurement in self._measure(missing[start : start + BATCH]):
                    found[key] = measurement
                progress(len(found), len(unique))
            return tuple(found[key] for key in keys)

    def _known(self, key: MeasurementKey) -> NestMeasurement | None:
        known = _remembered.get(key)
        if known is not None:
            _remembered.move_to_end(key)
            return known
        stored = self._store.get(key) if self._store is not None else None
        if stored is not None:
            _remember(key, stored)
        return stored

    def _measure(
        self, batch: Sequence[tuple[MeasurementKey, ConcreteNest]]
    ) -> list[tuple[MeasurementKey, NestMeasurement]]:
        if self._recorder is None or self._simulator is None:
            # Room for an iteration that is longer than the budget.
            self._recorder = TraceRecorder(2 * self._trace_budget)
            self._simulator = CacheSimulator()
        compiled = TracedBatch([nest.function for _, nest in batch], self._recorder)
        done = []
        for key, nest in batch:
            measurement = measure(nest, compiled.open(nest, self._seed), self._trace_budget, self._simulator)
            if self._store is not None:
                self._store.put(key, measurement)
            _remember(key, measurement)
            done.append((key, measurement))
        return done


def forget_measurements() -> None:
    """Empties the process's memory of measurements; files stay."""
    with _lock:
        _remembered.clear()


def _remember(key: MeasurementKey, measurement: NestMeasurement) -> None:
    _remembered[key] = measurement
    while len(_remembered) > REMEMBERED:
        _remembered.popitem(last=False)
