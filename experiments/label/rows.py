"""Feature rows of a label set under MODEL_SCHEMA, for any constants of the cost model, with and without profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.label_set import LabelSet
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.profile import HostProfile
from torch_pim.features.vector import machine_values, nest_values, profile_values
from torch_pim.models.cost_model.combine import device_total, host_total
from torch_pim.models.cost_model.constants import FROM_SPECS, CostConstants
from torch_pim.models.cost_model.estimate import CostEstimate, SideTimes, ratio_values
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.learned.inputs import MODEL_SCHEMA

Setting = Literal["profiled", "wall", "static"]
"""Profile as labelled, its wall time alone, or no profile."""

FeatureRows = NDArray[np.float64]
"""[rows, MODEL_SCHEMA columns]; NaN is unmeasured."""


@dataclass(frozen=True)
class RememberingCostModel(CostModel):
    """The cost model with other constants, on components that are computed once per nest and machine.

    Objects are told apart by identity, so nests and specifications must be those of one label set.
    """

    components: dict[tuple[int, int], SideTimes] = field(default_factory=dict)

    def host_times(self, nest: LoopNest, host: HostSpec) -> SideTimes:
        key = id(nest), id(host)
        if key not in self.components:
            self.components[key] = CostModel(FROM_SPECS).host_times(nest, host)
        scaled = _scaled(self.components[key], self.constants.host)
        return SideTimes(float(host_total(*scaled)), *scaled)

    def device_times(self, nest: LoopNest, device: DeviceSpec) -> SideTimes:
        key = id(nest), id(device)
        if key not in self.components:
            self.components[key] = CostModel(FROM_SPECS).device_times(nest, device)
        scaled = _scaled(self.components[key], self.constants.device)
        return SideTimes(float(device_total(*scaled, float(device.outstanding_misses))), *scaled)


def _scaled(times: SideTimes, factors: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    parts = (times.compute_ns, times.latency_ns, times.bandwidth_ns, times.overhead_ns)
    compute, latency, bandwidth, overhead = (part * factor for part, factor in zip(parts, factors, strict=True))
    return compute, latency, bandwidth, overhead


class RowSource:
    """Makes the rows of one label set, in the order of `LabelSet.rows`; constant parts are computed once."""

    def __init__(self, labels: LabelSet) -> None:
        self.labels = labels
        self.index = tuple(labels.rows())
        self._components: dict[tuple[int, int], SideTimes] = {}
        nests = [labelled.nest for labelled in labels.nests]
        self._nest = [nest_values(nest) for nest in nests]
        self._profile: dict[tuple[Setting, int, int], tuple[float, ...]] = {}
        self._machine = [machine_values(labels.hosts[h], labels.devices[d], nests[n]) for n, h, d in self.index]

    def estimates(self, constants: CostConstants, setting: Setting) -> list[CostEstimate]:
        """Estimates of every row; with a profile the host time is drawn towards the measured one."""
        model = RememberingCostModel(constants, self._components)
        labels = self.labels
        return [
            model.estimate(labels.nests[n].nest, labels.hosts[h], labels.devices[d], self._seen(n, h, setting))
            for n, h, d in self.index
        ]

    def rows(self, estimates: Sequence[CostEstimate], setting: Setting) -> FeatureRows:
        """Rows from the estimates of the same constants and setting."""
        found = np.empty((len(self.index), len(MODEL_SCHEMA.columns)))
        for row, ((n, h, _), estimate) in enumerate(zip(self.index, estimates, strict=True)):
            profile = self._profile_values(n, h, setting)
            found[row] = (*self._nest[n], *profile, *self._machine[row], *ratio_values(estimate))
        return found

    def _seen(self, nest: int, host: int, setting: Setting) -> HostProfile | None:
        profile = self.labels.profiles[nest][host]
        if profile is None or setting == "static":
            return None
        return profile if setting == "profiled" else wall_only(profile)

    def _profile_values(self, nest: int, host: int, setting: Setting) -> tuple[float, ...]:
        key = setting, nest, host
        if key not in self._profile:
            self._profile[key] = profile_values(self._seen(nest, host, setting), self.labels.nests[nest].nest)
        return self._profile[key]

    def host_times(self) -> NDArray[np.float64]:
        """Labelled host nanoseconds per row."""
        return np.array([self.labels.host_ns[n, h] for n, h, _ in self.index])

    def device_times(self) -> NDArray[np.float64]:
        """Labelled device nanoseconds per row."""
        return np.array([self.labels.device_ns[n, d] for n, _, d in self.index])


def wall_only(profile: HostProfile) -> HostProfile:
    """What a wall-clock profiler would have yielded: the time, and no counter."""
    return HostProfile(
        code_hash=profile.code_hash,
        host_id=profile.host_id,
        origin="wall",
        wall_time_ns=profile.wall_time_ns,
        warm=profile.warm,
        wall_time_spread=profile.wall_time_spread,
        repeats=profile.repeats,
    )
