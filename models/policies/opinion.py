"""What a stage-2 rule answers about one nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.cost_model.estimate import CostEstimate


@dataclass(frozen=True, slots=True)
class Opinion:
    """The side of one nest, or an abstention, which the next rule of the chain fills."""

    side: Side | None
    reason: str
    score: float | None = None
    """Calibrated probability that PIM is faster; None when no model was asked."""


class Rule(Protocol):
    """Stage 2 of a policy: is a candidate memory-bound in the sense that matters, faster beside the memory?"""

    @property
    def name(self) -> str: ...

    def opinions(
        self, problem: PlacementProblem, nests: Sequence[int], estimates: Sequence[CostEstimate]
    ) -> tuple[Opinion, ...]:
        """One opinion per entry of `nests` (indices of unique nests); `estimates` are of all nests of the problem."""
        ...
