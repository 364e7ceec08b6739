"""What one call's side costs in switches and flushes, given the sides of all others."""

from __future__ import annotations

from collections.abc import Sequence

from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.transitions import OUTSIDE, Flush, FlushEdge, flush_edges


class TransitionChange:
    """Looks only at the transitions next to the call, so that asking about every call stays cheap."""

    def __init__(self, problem: PlacementProblem, sides: Sequence[Side], flush: Flush) -> None:
        self._sides = list(sides)
        self._switch_ns = problem.device.switch_ns
        self._edges: list[list[FlushEdge]] = [[] for _ in problem.calls]
        for edge in flush_edges(problem, flush):
            for call in {edge.producer, *edge.readers} - {OUTSIDE}:
                self._edges[call].append(edge)

    def saved_ns(self, call: int) -> float:
        """Transition time that the call's side saves over the other side; negative if it costs more."""
        own = self._sides[call]
        other: Side = "pim" if own == "host" else "host"
        return self._around(call, other) - self._around(call, own)

    def _around(self, call: int, side: Side) -> float:
        def side_of(index: int) -> Side:
            if index == call:
                return side
            return self._sides[index] if 0 <= index < len(self._sides) else "host"

        cost = self._switch_ns * ((side_of(call - 1) != side) + (side_of(call + 1) != side))
        for edge in self._edges[call]:
            producer = side_of(edge.producer)
            if any(side_of(reader) != producer for reader in edge.readers):
                cost += edge.host_ns if producer == "host" else edge.device_ns
        return cost
