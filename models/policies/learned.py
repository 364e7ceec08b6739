"""The shipped default: work filter, then the trained classifier with its calibrated score, nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.cost_model.estimate import CostEstimate
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.errors import DeviceMismatch
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.guard import RangeGuard
from torch_pim.models.learned.inputs import model_rows
from torch_pim.models.policies.analytic import AnalyticRule
from torch_pim.models.policies.cost_model import CostModelRule, describe
from torch_pim.models.policies.model_loading import load_bundle
from torch_pim.models.policies.opinion import Opinion, Rule
from torch_pim.models.policies.policy import OnModelError, Policy, PolicyRequest
from torch_pim.models.policies.two_stage import TwoStagePolicy
from torch_pim.models.wording import against_threshold


class LearnedRule:
    """Asks the classifier of a bundle; abstains on machines and nests outside of its training range."""

    name = "learned"

    def __init__(self, bundle: Bundle, on_model_error: OnModelError = "fallback") -> None:
        self.bundle = bundle
        self.on_model_error = on_model_error
        self.guard = RangeGuard(bundle.manifest.ranges)

    def opinions(
        self, problem: PlacementProblem, nests: Sequence[int], estimates: Sequence[CostEstimate]
    ) -> tuple[Opinion, ...]:
        """Raises DeviceMismatch for machines outside the training range if model errors are not to be survived."""
        rows = model_rows(problem, nests, self.bundle.cost_model)
        scores = self.bundle.scores(rows)
        return tuple(
            self._opinion(problem, row, score, estimates[index])
            for index, row, score in zip(nests, rows, scores, strict=True)
        )

    def _opinion(
        self, problem: PlacementProblem, row: Sequence[float], score: float, estimate: CostEstimate
    ) -> Opinion:
        unknown_machine = self.guard.machine_problem(row)
        if unknown_machine is not None and self.on_model_error == "error":
            manifest = self.bundle.manifest
            raise DeviceMismatch(
                f"model {manifest.name} {manifest.version} was not trained for {problem.host.name} with "
                f"{problem.device.name}: {unknown_machine}; retrain with such machines, or choose another policy"
            )
        outside = unknown_machine or self.guard.nest_problem(row)
        if outside is not None:
            return Opinion(None, outside)
        threshold = self.bundle.manifest.threshold
        side: Side = "pim" if score >= threshold else "host"
        return Opinion(side, f"{describe(estimate, side)}; {against_threshold(score, threshold)}", score)


class MissingModelRule:
    """Stands in for a model that could not be loaded, so that every reason says so."""

    name = "learned"

    def opinions(
        self, problem: PlacementProblem, nests: Sequence[int], estimates: Sequence[CostEstimate]
    ) -> tuple[Opinion, ...]:
        return (Opinion(None, "no usable model"),) * len(nests)


def learned_policy(name: str, bundle: Bundle | None, on_model_error: OnModelError) -> TwoStagePolicy:
    """Classifier, then what fills its abstentions: the fitted cost model, then the analytic rule.

    Without a bundle only these two, with constants from the specifications.
    """
    rules: tuple[Rule, ...] = (CostModelRule(), AnalyticRule())
    if bundle is None:
        return TwoStagePolicy(name, (MissingModelRule(), *rules), CostModel())
    return TwoStagePolicy(
        name,
        (LearnedRule(bundle, on_model_error), *rules),
        bundle.cost_model,
        {"on_model_error": on_model_error},
        bundle.digest,
        bundle.manifest.profile_origins,
    )


def create(request: PolicyRequest) -> Policy:
    return learned_policy(request.name, load_bundle(request), request.on_model_error)
