"""Devices that watch or spoil what another device does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.protocols import Device, RangeKernel
from torch_pim.features.machines import DeviceSpec

Blocks = tuple[tuple[int, int], ...]


@dataclass
class RecordingDevice:
    """Passes everything on and keeps, per run, the iterations and the block of each core."""

    inner: Device
    runs: list[tuple[int, Blocks]] = field(default_factory=list)

    @property
    def spec(self) -> DeviceSpec:
        return self.inner.spec

    def supports(self, nest: ConcreteNest) -> str | None:
        return self.inner.supports(nest)

    def run(self, kernel: RangeKernel, iterations: int) -> Blocks:
        blocks = self.inner.run(kernel, iterations)
        self.runs.append((iterations, blocks))
        return blocks


@dataclass
class LosingDevice(RecordingDevice):
    """A broken device: it leaves out the last core's share of every nest that has one to lose."""

    def run(self, kernel: RangeKernel, iterations: int) -> Blocks:
        blocks = self.inner.run(lambda low, high: None, iterations)
        for low, high in blocks[:-1]:
            kernel(low, high)
        self.runs.append((iterations, blocks))
        return blocks


Wrap = Callable[[Device], RecordingDevice]
