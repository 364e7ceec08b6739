"""Stage 2 without a model: the two-sided roofline. Users compare the learned policy with it."""

from __future__ import annotations

from collections.abc import Sequence

from torch_pim.features.placement import PlacementProblem
from torch_pim.models.analytic import roofline
from torch_pim.models.cost_model.estimate import CostEstimate
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.policies.opinion import Opinion
from torch_pim.models.policies.policy import Policy, PolicyRequest
from torch_pim.models.policies.two_stage import TwoStagePolicy
from torch_pim.models.wording import times


class AnalyticRule:
    """PIM where its roofline plus the launch is below the host's roofline; never abstains."""

    name = "analytic"

    def opinions(
        self, problem: PlacementProblem, nests: Sequence[int], estimates: Sequence[CostEstimate]
    ) -> tuple[Opinion, ...]:
        return tuple(self._opinion(problem, index) for index in nests)

    def _opinion(self, problem: PlacementProblem, index: int) -> Opinion:
        found = roofline(problem.nests[index], problem.host, problem.device)
        memory = found.intensity < found.host_balance
        return Opinion(
            "pim" if found.device_ns < found.host_ns else "host",
            f"{'memory' if memory else 'compute'}-bound: {found.intensity:.3g} operations per byte, machine balance "
            f"{found.host_balance:.3g} on host and {found.device_balance:.3g} on PIM; roofline "
            f"{times(found.host_ns, found.device_ns)} with launch",
        )


def create(request: PolicyRequest) -> Policy:
    return TwoStagePolicy(request.name, (AnalyticRule(),), CostModel())
