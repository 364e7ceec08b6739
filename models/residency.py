"""Placement of a whole plan at once: the exact minimum of isolated times, switches and flushes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.errors import PlacementError
from torch_pim.models.plan_time import IsolatedTimes, check_times
from torch_pim.models.transitions import OUTSIDE, Flush, flush_edges


def optimal_sides(
    problem: PlacementProblem,
    times: IsolatedTimes,
    flush: Flush = "serial",
    forced: Sequence[Side | None] | None = None,
) -> tuple[Side, ...]:
    """Sides of all calls that minimise `plan_time`; a call forced to a side keeps it, ties go to the host.

    Raises PlacementError where a call has no finite time on any side that it may take.
    """
    check_times(problem, times)
    fixed = _fixed_sides(problem, times, forced)
    advantages = tuple(
        0.0 if side is not None else times.host_ns[call.nest] - times.device_ns[call.nest]
        for call, side in zip(problem.calls, fixed, strict=True)
    )
    return sides_by_advantage(problem, advantages, fixed, flush)


def sides_by_advantage(
    problem: PlacementProblem,
    advantages_ns: Sequence[float],
    fixed: Sequence[Side | None],
    flush: Flush = "serial",
) -> tuple[Side, ...]:
    """Like `optimal_sides`, given what each call saves on the device (negative: on the host) and which are fixed.

    Every term is submodular, so a minimum cut is the exact optimum (Kolmogorov and Zabih, 2004). Each buffer version
    has its own node, so that it is flushed once and not once per reader.
    """
    # Imported here because it loads scipy, which a compilation without this policy does not need.
    from torch_pim.models.min_cut import DEVICE, HOST, CutGraph

    graph = CutGraph()
    nodes = [graph.new_node() if side is None else HOST if side == "host" else DEVICE for side in fixed]

    def node_of(call: int) -> int:
        return HOST if call == OUTSIDE else nodes[call]

    path = [OUTSIDE, *range(len(nodes)), OUTSIDE]
    for before, after in itertools.pairwise(path):
        graph.charge_either_way(node_of(before), node_of(after), problem.device.switch_ns)
    for edge in flush_edges(problem, flush):
        readers = [node_of(reader) for reader in edge.readers]
        graph.charge_once(node_of(edge.producer), readers, edge.host_ns, edge.device_ns)
    for node, side, advantage in zip(nodes, fixed, advantages_ns, strict=True):
        if side is None:
            graph.prefer_device(node, advantage)
    on_device = graph.device_side()
    return tuple("pim" if node in on_device else "host" for node in nodes)


def _fixed_sides(
    problem: PlacementProblem, times: IsolatedTimes, forced: Sequence[Side | None] | None
) -> tuple[Side | None, ...]:
    asked = tuple(forced) if forced is not None else (None,) * len(problem.calls)
    if len(asked) != len(problem.calls):
        raise PlacementError(
            f"{len(asked)} forced sides for {len(problem.calls)} calls: expected one (or None) per call"
        )
    fixed: list[Side | None] = []
    for call, side in zip(problem.calls, asked, strict=True):
        able: list[Side] = []
        if math.isfinite(times.host_ns[call.nest]):
            able.append("host")
        if math.isfinite(times.device_ns[call.nest]):
            able.append("pim")
        if not able or (side is not None and side not in able):
            raise PlacementError(f"call {call.site!r} has no finite time on {side or 'either side'}")
        fixed.append(side if side is not None else able[0] if len(able) == 1 else None)
    return tuple(fixed)
