"""What no policy can beat, from emulated times: the oracle of each nest and the optimum of the whole plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.protocols import Device, NestTiming, TimingModel
from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.plan_time import IsolatedTimes
from torch_pim.models.residency import optimal_sides
from torch_pim.models.transitions import Flush
from torch_pim.models.work_filter import forced_reason


@dataclass(frozen=True, slots=True)
class EmulatedNests:
    """Isolated times of the unique nests of a problem, in its order."""

    host: tuple[NestTiming, ...]
    device: tuple[NestTiming, ...]
    refused: tuple[str | None, ...]
    """Why the device cannot run the nest; None if it can."""

    @property
    def times(self) -> IsolatedTimes:
        """Totals; a nest that the device cannot run has an infinite time there."""
        device_ns = (
            timing.total_ns if reason is None else math.inf
            for timing, reason in zip(self.device, self.refused, strict=True)
        )
        return IsolatedTimes(tuple(timing.total_ns for timing in self.host), tuple(device_ns))


def emulate(
    problem: PlacementProblem, nests: Sequence[ConcreteNest], timing: TimingModel, device: Device
) -> EmulatedNests:
    """Times of the problem's nests on its machines; `nests` are their concrete forms, in the same order."""
    return EmulatedNests(
        host=tuple(timing.host_times(nests, problem.host)),
        device=tuple(timing.device_times(nests, problem.device)),
        refused=tuple(forced_reason(nest.loop_nest, problem.device) or device.supports(nest) for nest in nests),
    )


def oracle_sides(problem: PlacementProblem, times: IsolatedTimes) -> tuple[Side, ...]:
    """The faster isolated side of every call, transitions ignored; ties go to the host."""
    faster: list[Side] = [
        "pim" if device_ns < host_ns else "host"
        for host_ns, device_ns in zip(times.host_ns, times.device_ns, strict=True)
    ]
    return tuple(faster[call.nest] for call in problem.calls)


def optimum_sides(problem: PlacementProblem, times: IsolatedTimes, flush: Flush = "serial") -> tuple[Side, ...]:
    """The sides that minimise `plan_time`, transitions included."""
    return optimal_sides(problem, times, flush)
