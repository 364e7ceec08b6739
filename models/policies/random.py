"""A seeded coin per call: what any policy must beat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from torch_pim.features.placement import Decision, Placement, PlacementProblem, Side
from torch_pim.models.policies.fingerprint import policy_fingerprint
from torch_pim.models.policies.policy import Policy, PolicyRequest
from torch_pim.models.work_filter import forced_reasons


@dataclass(frozen=True, slots=True)
class RandomPolicy:
    """Places each call by a hash of seed, call index and nest: no generator state, the same coin on every machine."""

    seed: int = 0
    name: str = "random"

    def place(self, problem: PlacementProblem) -> Placement:
        forced = forced_reasons(problem)
        hashes = [nest.feature_hash for nest in problem.nests]
        decisions: list[Decision] = []
        for index, call in enumerate(problem.calls):
            why = forced[call.nest]
            if why is not None:
                decisions.append(Decision("host", "forced", self.name, why))
                continue
            side = self._coin(index, hashes[call.nest])
            decisions.append(Decision(side, "fixed", self.name, f"coin of seed {self.seed} for call {index}"))
        return Placement(tuple(decisions), self.name, self.fingerprint(problem))

    def _coin(self, call: int, nest_hash: str) -> Side:
        first = hashlib.sha256(f"{self.seed}:{call}:{nest_hash}".encode()).digest()[0]
        return "pim" if first & 1 else "host"

    def fingerprint(self, problem: PlacementProblem) -> str:
        return policy_fingerprint(self.name, problem, {"seed": self.seed})


def create(request: PolicyRequest) -> Policy:
    return RandomPolicy(request.seed)
