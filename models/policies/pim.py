"""Everything that the device can run on the device."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.features.placement import Decision, Placement, PlacementProblem
from torch_pim.models.policies.fingerprint import policy_fingerprint
from torch_pim.models.policies.policy import Policy, PolicyRequest
from torch_pim.models.work_filter import forced_reasons


@dataclass(frozen=True, slots=True)
class PimPolicy:
    """Places every partitionable nest of supported types on PIM, the rest on the host with the reason."""

    name: str = "pim"

    def place(self, problem: PlacementProblem) -> Placement:
        by_nest: list[Decision] = []
        for forced in forced_reasons(problem):
            if forced is None:
                by_nest.append(Decision("pim", "fixed", self.name, "policy pim offloads all that the device can run"))
            else:
                by_nest.append(Decision("host", "forced", self.name, forced))
        decisions = tuple(by_nest[call.nest] for call in problem.calls)
        return Placement(decisions, self.name, self.fingerprint(problem))

    def fingerprint(self, problem: PlacementProblem) -> str:
        return policy_fingerprint(self.name, problem, {})


def create(request: PolicyRequest) -> Policy:
    return PimPolicy()
