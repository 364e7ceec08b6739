"""The learned policy, reconsidered over the whole plan: a minimum cut with switches and flushes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch_pim.features.placement import Decision, Placement, PlacementProblem, Side
from torch_pim.models.errors import PlacementError
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.guard import RangeGuard
from torch_pim.models.learned.inputs import model_rows
from torch_pim.models.plan_time import IsolatedTimes
from torch_pim.models.policies.fingerprint import policy_fingerprint
from torch_pim.models.policies.learned import learned_policy
from torch_pim.models.policies.model_loading import load_bundle
from torch_pim.models.policies.policy import Policy, PolicyRequest
from torch_pim.models.policies.two_stage import TwoStagePolicy, estimate_all
from torch_pim.models.residency import sides_by_advantage
from torch_pim.models.transition_change import TransitionChange
from torch_pim.models.transitions import Flush
from torch_pim.models.wording import duration, times


@dataclass(frozen=True)
class ResidencyPolicy:
    """Overrides the learned side of a call where that saves more switches and flushes than it costs.

    The unary term of a call is the mean of two estimates of what PIM saves: the regressed times say `gain`, and the
    classifier with score p says (2p - 1) * |gain|. Where both agree the gain counts in full; where a sure classifier
    contradicts the times the call is indifferent, and its neighbours decide.
    """

    name: str
    first: TwoStagePolicy
    bundle: Bundle | None
    flush: Flush = "serial"

    def place(self, problem: PlacementProblem) -> Placement:
        seen = self.first.visible(problem)
        estimates = estimate_all(self.first.cost_model, seen)
        decisions = self.first.decide(seen, estimates)
        fixed: tuple[Side | None, ...] = tuple(d.side if d.stage == "forced" else None for d in decisions)
        isolated = regressed_times(seen, [(e.host_ns, e.device_ns) for e in estimates], self.bundle)
        gains = [isolated.host_ns[call.nest] - isolated.device_ns[call.nest] for call in problem.calls]
        blended = [blend(gain, d.score) for gain, d in zip(gains, decisions, strict=True)]
        sides = sides_by_advantage(problem, blended, fixed, self.flush)
        change = TransitionChange(problem, sides, self.flush)
        final = tuple(
            d if d.side == side else self._override(problem, isolated, index, d, side, change)
            for index, (d, side) in enumerate(zip(decisions, sides, strict=True))
        )
        return Placement(final, self.name, self.fingerprint(problem))

    def _override(
        self,
        problem: PlacementProblem,
        isolated: IsolatedTimes,
        index: int,
        before: Decision,
        side: Side,
        change: TransitionChange,
    ) -> Decision:
        nest = problem.calls[index].nest
        saved = change.saved_ns(index)
        why = (
            f"saves {duration(saved)} of switches and flushes"
            if saved > 0
            else "the regressed times outweigh the score"
        )
        return replace(
            before,
            side=side,
            stage="residency",
            policy=self.name,
            reason=f"moved from {before.side} to {side}: {why} "
            f"({times(isolated.host_ns[nest], isolated.device_ns[nest])}); was {before.side} as {before.reason}",
        )

    def fingerprint(self, problem: PlacementProblem) -> str:
        digest = None if self.bundle is None else self.bundle.digest
        options = {"first": self.first.fingerprint(problem), "flush": self.flush}
        return policy_fingerprint(self.name, problem, options, digest)


def overrides(placement: Placement) -> int:
    """How many calls the residency pass moved away from the side that the first policy chose."""
    return sum(decision.stage == "residency" for decision in placement.decisions)


def blend(gain_ns: float, score: float | None) -> float:
    """Mean of the regressed gain and the classifier's expected gain; the regressed one alone without a score."""
    if score is None:
        return gain_ns
    return 0.5 * (gain_ns + (2.0 * score - 1.0) * abs(gain_ns))


def regressed_times(
    problem: PlacementProblem, estimates_ns: Sequence[tuple[float, float]], bundle: Bundle | None
) -> IsolatedTimes:
    """Cost-model times of all unique nests, times exp(gated residual) of the bundle's regressors.

    Outside of the training range the residual is left away, as the classifier abstains there. Raises PlacementError
    for a nest whose estimates are not finite.
    """
    for nest, (host_ns, device_ns) in zip(problem.nests, estimates_ns, strict=True):
        if not (math.isfinite(host_ns) and math.isfinite(device_ns)):
            raise PlacementError(f"the cost model has no finite times for nest {nest.name!r}")
    corrections: Sequence[tuple[float, float]] = [(0.0, 0.0)] * len(problem.nests)
    if bundle is not None and (bundle.host_residual is not None or bundle.device_residual is not None):
        rows = model_rows(problem, range(len(problem.nests)), bundle.cost_model)
        guard = RangeGuard(bundle.manifest.ranges)
        corrections = [
            (0.0, 0.0) if guard.machine_problem(row) or guard.nest_problem(row) else correction
            for row, correction in zip(rows, bundle.log_residuals(rows), strict=True)
        ]
    host = [t * math.exp(c) for (t, _), (c, _) in zip(estimates_ns, corrections, strict=True)]
    device = [t * math.exp(c) for (_, t), (_, c) in zip(estimates_ns, corrections, strict=True)]
    return IsolatedTimes(tuple(host), tuple(device))


def create(request: PolicyRequest) -> Policy:
    """Without a usable bundle: the cost model's sides and times, under the same cut."""
    bundle = load_bundle(request)
    return ResidencyPolicy(request.name, learned_policy("learned", bundle, request.on_model_error), bundle)
