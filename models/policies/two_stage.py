"""The frame of most policies: forced sides, work filter, a chain of stage-2 rules, and nests that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch_pim.features.placement import Decision, Placement, PlacementProblem, Side, Stage
from torch_pim.features.profile import ORIGINS
from torch_pim.models.cost_model.estimate import CostEstimate
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.policies.fingerprint import Option, policy_fingerprint
from torch_pim.models.policies.opinion import Rule
from torch_pim.models.work_filter import forced_reason, require_concrete, work_filter


@dataclass(frozen=True, slots=True)
class Follows:
    """A nest too small to decide about on its own."""

    reason: str


@dataclass(frozen=True)
class TwoStagePolicy:
    """Work filter, then the rules in turn: where one abstains the next one decides, and at last the host."""

    name: str
    rules: tuple[Rule, ...]
    cost_model: CostModel
    """Estimates for the work filter and for the words of reasons."""
    options: Mapping[str, Option] = field(default_factory=dict)
    bundle_digest: str | None = None
    profile_origins: tuple[str, ...] = ORIGINS
    """Origins of profiles that this policy looks at; others count as none."""

    def place(self, problem: PlacementProblem) -> Placement:
        seen = self.visible(problem)
        decisions = self.decide(seen, estimate_all(self.cost_model, seen))
        return Placement(decisions, self.name, self.fingerprint(problem))

    def visible(self, problem: PlacementProblem) -> PlacementProblem:
        """The problem without the profiles that this policy must not look at; PlacementError if it is symbolic."""
        require_concrete(problem)
        kept = tuple(p if p is not None and p.origin in self.profile_origins else None for p in problem.profiles)
        return replace(problem, profiles=kept)

    def decide(self, problem: PlacementProblem, estimates: Sequence[CostEstimate]) -> tuple[Decision, ...]:
        """One decision per call, given the estimates of all unique nests."""
        return resolve_followers(problem, self._by_nest(problem, estimates), self.name)

    def fingerprint(self, problem: PlacementProblem) -> str:
        options = {**self.options, **{f"constant:{k}": v for k, v in self.cost_model.constants.to_json().items()}}
        return policy_fingerprint(self.name, problem, options, self.bundle_digest)

    def _by_nest(self, problem: PlacementProblem, estimates: Sequence[CostEstimate]) -> list[Decision | Follows]:
        """A decision per unique nest, or that it follows its neighbours."""
        decided: dict[int, Decision | Follows] = {}
        for index, (nest, estimate) in enumerate(zip(problem.nests, estimates, strict=True)):
            forced = forced_reason(nest, problem.device)
            if forced is not None:
                decided[index] = Decision("host", "forced", self.name, forced)
                continue
            answer = work_filter(estimate, problem.device)
            if answer.verdict == "host":
                decided[index] = Decision("host", "work_filter", self.name, answer.reason)
            elif answer.verdict == "follows":
                decided[index] = Follows(answer.reason)
        abstained: dict[int, str] = {}
        for position, rule in enumerate(self.rules):
            open_nests = [i for i in range(len(problem.nests)) if i not in decided]
            for index, opinion in zip(open_nests, rule.opinions(problem, open_nests, estimates), strict=True):
                before = abstained.get(index, "")
                if opinion.side is None:
                    abstained[index] = f"{before}{rule.name} abstains ({opinion.reason}); "
                else:
                    stage: Stage = "boundedness" if position == 0 else "fallback"
                    reason = before + opinion.reason
                    decided[index] = Decision(opinion.side, stage, rule.name, reason, opinion.score)
        for index in range(len(problem.nests)):
            if index not in decided:
                decided[index] = Decision("host", "fallback", "host", f"{abstained.get(index, '')}nothing else decides")
        return [decided[index] for index in range(len(problem.nests))]


def estimate_all(cost_model: CostModel, problem: PlacementProblem) -> tuple[CostEstimate, ...]:
    """Estimates of all unique nests, which must be concrete."""
    return tuple(
        cost_model.estimate(nest, problem.host, problem.device, profile)
        for nest, profile in zip(problem.nests, problem.profiles, strict=True)
    )


def resolve_followers(
    problem: PlacementProblem, by_nest: Sequence[Decision | Follows], policy: str
) -> tuple[Decision, ...]:
    """One decision per call: a nest that follows takes the side of the nearest decided call in program order.

    At equal distance the call before it wins (it moves no switch: between two sides there is one anyway). Where
    nothing is decided all of them stay on the host, where the program begins and ends.
    """
    own = [by_nest[call.nest] for call in problem.calls]
    leaders = [(index, found.side) for index, found in enumerate(own) if isinstance(found, Decision)]
    decisions: list[Decision] = []
    after = 0
    for index, found in enumerate(own):
        if isinstance(found, Decision):
            decisions.append(found)
            continue
        while after < len(leaders) and leaders[after][0] < index:
            after += 1
        near = [leaders[i] for i in (after - 1, after) if 0 <= i < len(leaders)]
        side: Side = "host"
        reason = f"{found.reason}; nothing around it is decided, so it stays on the host"
        if near:
            leader, side = min(near, key=lambda entry: (abs(entry[0] - index), entry[0]))
            where = "before" if leader < index else "after"
            reason = f"{found.reason}; follows {problem.calls[leader].site} {where} it to {side}"
        decisions.append(Decision(side, "work_filter", policy, reason))
    return tuple(decisions)
