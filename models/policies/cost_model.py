"""Stage 2 by the cost model: PIM where its closed form is faster. A strong policy, and the learned one's fallback."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.cost_model.estimate import CostEstimate
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.policies.analytic import AnalyticRule
from torch_pim.models.policies.model_loading import load_bundle
from torch_pim.models.policies.opinion import Opinion
from torch_pim.models.policies.policy import Policy, PolicyRequest
from torch_pim.models.policies.two_stage import TwoStagePolicy
from torch_pim.models.wording import times


class CostModelRule:
    """Compares the estimated times, launch included; abstains where an estimate is not a positive number."""

    name = "cost-model"

    def opinions(
        self, problem: PlacementProblem, nests: Sequence[int], estimates: Sequence[CostEstimate]
    ) -> tuple[Opinion, ...]:
        return tuple(_opinion(estimates[index]) for index in nests)


def boundedness(estimate: CostEstimate) -> str:
    """`memory-bound`, `compute-bound` or `overhead-bound`: the host's largest component."""
    bound = estimate.host.bound
    return "memory-bound" if bound.startswith("memory") else f"{bound.removeprefix('launch ')}-bound"


def describe(estimate: CostEstimate, side: Side) -> str:
    """E.g. `memory-bound: cost model sees 12.1 us on host, 3.04 us on PIM`; says so if the side is unusual."""
    bound = boundedness(estimate)
    unusual = (bound == "memory-bound") != (side == "pim")
    but = f", but {'PIM' if side == 'pim' else 'the host'} is judged faster" if unusual else ""
    return f"{bound}{but}: cost model sees {times(estimate.host_ns, estimate.device_ns)}"


def _opinion(estimate: CostEstimate) -> Opinion:
    if not all(math.isfinite(t) and t > 0 for t in (estimate.host_ns, estimate.device_ns)):
        return Opinion(None, f"estimates of {estimate.host_ns} and {estimate.device_ns} ns")
    side: Side = "pim" if estimate.device_ns < estimate.host_ns else "host"
    return Opinion(side, describe(estimate, side))


def create(request: PolicyRequest) -> Policy:
    """With a bundle: its fitted constants. Without: constants from the specifications."""
    bundle = None if request.bundle is None else load_bundle(request)
    cost_model = CostModel() if bundle is None else bundle.cost_model
    return TwoStagePolicy(request.name, (CostModelRule(), AnalyticRule()), cost_model)
