"""A comparison as text: one table per pair of machines and profile setting."""

from __future__ import annotations

from collections.abc import Iterable

from torch_pim.compiler_hook.report.render import table
from torch_pim.experiments.comparison.records import Comparison, PairComparison, PolicyResult
from torch_pim.experiments.lowered_model import describe_inputs

_UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))


def render_comparison(comparison: Comparison) -> str:
    """Heading with everything that the figures depend on, then the tables."""
    model = comparison.model
    lines = [
        f"{model.title}: modelled time of the whole plan; nothing here is measured",
        f"  types {', '.join(model.element_types)}; inputs {describe_inputs(model)}",
        f"  {comparison.pairs[0].counts}",
    ]
    for pair in comparison.pairs:
        lines += ["", *_pair_lines(pair, comparison.emulator_version)]
    return "\n".join(lines)


def _pair_lines(pair: PairComparison, emulator_version: str) -> Iterable[str]:
    unit, divisor = time_unit(min(result.plan.total_ns for result in pair.policies.values()))
    profile = pair.profile if pair.profile == "none" else f"{pair.profile} ({pair.profiled_nests} nests)"
    yield f"host {pair.host.name}, device {pair.device.name}, profile {profile}"
    yield f"  flush {pair.flush}, emulator {emulator_version}; speedup is over all on {pair.host.name}"
    amounts = (f"time [{unit}]", "speedup", "on PIM", "switches", f"transitions [{unit}]")
    header = ("policy", *amounts, "nest regret", "plan regret")
    yield from table(header, (_row(name, result, divisor) for name, result in pair.policies.items()))


def _row(name: str, result: PolicyResult, divisor: float) -> tuple[str, ...]:
    plan = result.plan
    return (
        name,
        number(plan.total_ns / divisor),
        f"{result.speedup:.2f}x",
        str(plan.placed_on_pim),
        str(plan.switches),
        number(plan.transition_ns / divisor),
        f"{100 * result.nest_regret:.1f}%",
        f"{100 * result.plan_regret:.1f}%",
    )


def time_unit(time_ns: float) -> tuple[str, float]:
    """The unit in which a time has one to three digits before the point, and its nanoseconds."""
    chosen = _UNITS[0]
    for unit in _UNITS:
        if time_ns >= unit[1]:
            chosen = unit
    return chosen


def number(value: float) -> str:
    """Four digits or more, at most three of them after the point."""
    decimals = 3 if value < 10 else 2 if value < 100 else 1 if value < 1000 else 0
    return f"{value:.{decimals}f}"
