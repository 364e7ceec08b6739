"""Everything on the host: the baseline of every comparison."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.features.placement import Decision, Placement, PlacementProblem
from torch_pim.models.policies.fingerprint import policy_fingerprint
from torch_pim.models.policies.policy import Policy, PolicyRequest


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """Places every call on the host."""

    name: str = "host"

    def place(self, problem: PlacementProblem) -> Placement:
        decision = Decision("host", "fixed", self.name, "policy host keeps everything on the host")
        return Placement((decision,) * len(problem.calls), self.name, self.fingerprint(problem))

    def fingerprint(self, problem: PlacementProblem) -> str:
        return policy_fingerprint(self.name, problem, {})


def create(request: PolicyRequest) -> Policy:
    return HostPolicy()
