"""Compares policies on held-out models and pairs of machines, and sums the comparisons up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from torch_pim.experiments.comparison.compare import FLUSH_MODELS, compare
from torch_pim.experiments.comparison.profile_settings import NONE, SIMULATED, ProfileSetting
from torch_pim.experiments.comparison.records import Comparison, NestResult, PairComparison, PolicyResult
from torch_pim.experiments.comparison.settings import CompareSettings
from torch_pim.experiments.label.held_out_models import ModelRun
from torch_pim.experiments.lowered_model import lower_reference
from torch_pim.experiments.train.decisions import balanced_accuracy, decisive
from torch_pim.models.transitions import Flush
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

Setting = Literal["static", "profiled"]
SETTINGS: tuple[Setting, ...] = ("static", "profiled")


@dataclass(frozen=True, slots=True)
class Summary:
    """One policy in one setting over all runs and pairs of machines. Regrets are geometric means."""

    policy: str
    setting: Setting
    flush: Flush
    comparisons: int
    plan_regret: float
    worst_plan_regret: float
    nest_regret: float
    worst_slowdown: float
    """Largest plan time over host-only time; 1 if no plan is slower than the host alone."""
    decisive_nests: int
    """Unique nests per comparison, summed, whose better side means something and is free."""
    decisive_balanced_accuracy: float
    """Over all of them together; NaN if all are of one side."""
    coverage: float
    """Decisive nests over all unique nests, those that no policy may offload included."""


def profile_settings(seed: int) -> tuple[ProfileSetting, ...]:
    """Both settings of an evaluation: no profile, and simulated ones with measurement noise."""
    return ProfileSetting(NONE), ProfileSetting(SIMULATED, seed)


def evaluate(
    runs: Iterable[ModelRun],
    settings: CompareSettings,
    timing: EmulatorTimingModel,
    layers: int | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[Comparison, ...]:
    """One comparison per run, over all pairs of machines and profile settings. `layers` shortens the models."""
    found = []
    for run in runs:
        progress(f"lowering {run.name}")
        options = dict(run.options) if layers is None else {**dict(run.options), "layers": layers}
        found.append(compare(lower_reference(run.workload, options), settings, timing, progress))
    return tuple(found)


def summarise(comparisons: Sequence[Comparison]) -> tuple[Summary, ...]:
    """One line per setting, flush model and policy, in the order of the comparison: oracle and optimum come last."""
    pairs = [pair for comparison in comparisons for pair in comparison.pairs]
    names = list(pairs[0].policies) if pairs else []
    return tuple(
        _summary(name, setting, flush, [pair for pair in pairs if setting_of(pair) == setting])
        for setting in SETTINGS
        for flush in FLUSH_MODELS
        for name in names
    )


def setting_of(pair: PairComparison) -> Setting:
    return "static" if pair.profile == NONE else "profiled"


def _summary(policy: str, setting: Setting, flush: Flush, pairs: Sequence[PairComparison]) -> Summary:
    results: list[PolicyResult] = [pair.results[flush][policy] for pair in pairs]
    nests = [nest for pair in pairs for nest in pair.nests]
    decisive_nests, accuracy = _accuracy(policy, nests)
    return Summary(
        policy=policy,
        setting=setting,
        flush=flush,
        comparisons=len(pairs),
        plan_regret=_geometric([r.plan_regret for r in results]),
        worst_plan_regret=max(r.plan_regret for r in results),
        nest_regret=_geometric([r.nest_regret for r in results]),
        worst_slowdown=max(1.0, *(1.0 / r.speedup for r in results)),
        decisive_nests=decisive_nests,
        decisive_balanced_accuracy=accuracy,
        coverage=decisive_nests / len(nests) if nests else 0.0,
    )


def _accuracy(policy: str, nests: Sequence[NestResult]) -> tuple[int, float]:
    """A nest counts as placed on PIM if more than half of its calls are."""
    free = [nest for nest in nests if nest.refused is None and nest.calls]
    host = np.array([nest.host.total_ns for nest in free])
    device = np.array([nest.device.total_ns for nest in free])
    on_pim = np.array([2 * nest.pim_calls[policy] > nest.calls for nest in free], np.bool_)
    clear = decisive(host, device)
    return int(clear.sum()), balanced_accuracy((device < host)[clear], on_pim[clear])


def _geometric(regrets: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log1p(regrets))) - 1.0)
