"""The modelled time of a whole plan: the one function that charges every policy, optimum included."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.errors import PlacementError
from torch_pim.models.transitions import OUTSIDE, Flush, flush_edges


@dataclass(frozen=True, slots=True)
class IsolatedTimes:
    """Time of one execution of each unique nest alone on each side, launch included, transitions excluded.

    A nest that a side cannot run has an infinite or NaN time there.
    """

    host_ns: tuple[float, ...]
    device_ns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PlanTime:
    """Modelled nanoseconds of a plan; total = execution + transition, transition = flush + switch."""

    total_ns: float
    execution_ns: float
    transition_ns: float
    flush_ns: float
    switch_ns: float
    switches: int
    """Changes of side between consecutive calls, the start and the end on the host included."""
    placed_on_pim: int
    """Calls that run on the device."""


def check_times(problem: PlacementProblem, times: IsolatedTimes) -> None:
    """Raises PlacementError unless there is one time per unique nest and side, none of them negative."""
    for side, values in (("host", times.host_ns), ("device", times.device_ns)):
        if len(values) != len(problem.nests):
            raise PlacementError(f"{len(values)} {side} times for {len(problem.nests)} nests: expected one per nest")
        for nest, value in zip(problem.nests, values, strict=True):
            if value < 0:
                raise PlacementError(f"{side} time of nest {nest.name!r} is {value} ns: expected a non-negative time")


def plan_time(
    problem: PlacementProblem, times: IsolatedTimes, sides: Sequence[Side], flush: Flush = "serial"
) -> PlanTime:
    """Charges isolated times, one switch per change of side, and one flush per buffer version that crosses.

    `sides` has one entry per call. Raises PlacementError for a wrong length or a nest placed where it has no time.
    """
    check_times(problem, times)
    if len(sides) != len(problem.calls):
        raise PlacementError(f"{len(sides)} sides for {len(problem.calls)} calls: expected one per call")
    execution: list[float] = []
    for call, side in zip(problem.calls, sides, strict=True):
        if side not in ("host", "pim"):
            raise PlacementError(f"side {side!r} of call {call.site!r}: expected 'host' or 'pim'")
        value = (times.host_ns if side == "host" else times.device_ns)[call.nest]
        if not math.isfinite(value):
            raise PlacementError(
                f"call {call.site!r} is placed on {side}, where nest {problem.nests[call.nest].name!r} has no time; "
                "place it on the other side"
            )
        execution.append(value)

    def side_of(call: int) -> Side:
        return "host" if call == OUTSIDE else sides[call]

    flushes: list[float] = []
    for edge in flush_edges(problem, flush):
        producer = side_of(edge.producer)
        if any(side_of(reader) != producer for reader in edge.readers):
            flushes.append(edge.host_ns if producer == "host" else edge.device_ns)
    path: list[Side] = ["host", *sides, "host"]
    switches = sum(a != b for a, b in itertools.pairwise(path))
    execution_ns, flush_ns = math.fsum(execution), math.fsum(flushes)
    switch_ns = switches * problem.device.switch_ns
    return PlanTime(
        total_ns=execution_ns + flush_ns + switch_ns,
        execution_ns=execution_ns,
        transition_ns=flush_ns + switch_ns,
        flush_ns=flush_ns,
        switch_ns=switch_ns,
        switches=switches,
        placed_on_pim=sum(side == "pim" for side in sides),
    )
