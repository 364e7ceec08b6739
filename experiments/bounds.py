"""What no policy can beat, from emulated times: the oracle of each nest and the optimum of the whole plan."""

from __future__ import annotations

from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.plan_time import IsolatedTimes
from torch_pim.models.residency import optimal_sides
from torch_pim.models.transitions import Flush


def oracle_sides(problem: PlacementProblem, times: IsolatedTimes) -> tuple[Side, ...]:
    """The faster isolated side of every call; ties and nests without a device time go to the host."""
    faster: list[Side] = [
        "pim" if device < host else "host" for host, device in zip(times.host_ns, times.device_ns, strict=True)
    ]
    return tuple(faster[call.nest] for call in problem.calls)


def optimum_sides(problem: PlacementProblem, times: IsolatedTimes, flush: Flush = "serial") -> tuple[Side, ...]:
    """The sides that minimise `plan_time`, transitions included."""
    return optimal_sides(problem, times, flush)
