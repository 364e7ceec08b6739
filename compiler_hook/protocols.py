"""What the hook asks of other rooms and of plug-ins: devices, profilers and timing models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.profile import HostProfile

RangeKernel = Callable[[int, int], None]
"""Runs iterations [lo, hi) of a nest's linearised parallel range on already bound buffers; releases the GIL."""


@runtime_checkable
class Device(Protocol):
    """Runs the nests that were placed on PIM."""

    spec: DeviceSpec

    def run(self, kernel: RangeKernel, iterations: int) -> tuple[tuple[int, int], ...]:
        """Runs all iterations, split over the device's cores; returns the sub-range of each core that ran."""
        ...

    def supports(self, nest: ConcreteNest) -> str | None:
        """None if the device can run the nest, else the reason why not."""
        ...


class Profiler(Protocol):
    """Yields one HostProfile per nest."""

    def profile(self, nests: Sequence[ConcreteNest]) -> tuple[HostProfile, ...]: ...


class NestTiming(Protocol):
    """Time of one nest on one machine, by component; `components` sum or overlap into `total_ns` as documented."""

    @property
    def total_ns(self) -> float: ...

    @property
    def components(self) -> Mapping[str, float]: ...


class TimingModel(Protocol):
    """Modelled times of nests, isolated and with cold caches."""

    version: str

    def host_times(self, nests: Sequence[ConcreteNest], host: HostSpec) -> Sequence[NestTiming]: ...

    def device_times(self, nests: Sequence[ConcreteNest], device: DeviceSpec) -> Sequence[NestTiming]: ...
