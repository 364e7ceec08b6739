"""An evaluation as text and as values for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from torch_pim.compiler_hook.report.render import table
from torch_pim.experiments.comparison.output import comparison_json
from torch_pim.experiments.comparison.records import Comparison
from torch_pim.experiments.evaluate.evaluation import Summary, setting_of
from torch_pim.experiments.provenance import versions
from torch_pim.models.transitions import Flush


def evaluation_json(comparisons: Sequence[Comparison], summaries: Iterable[Summary]) -> dict[str, Any]:
    """Summary lines and every comparison; a figure that does not exist is null."""
    return {
        "times": "modelled",
        "versions": versions(),
        "summary": [_summary_json(summary) for summary in summaries],
        "comparisons": [comparison_json(comparison) for comparison in comparisons],
    }


def _summary_json(summary: Summary) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(summary).items()}


def render_evaluation(comparisons: Sequence[Comparison], summaries: Iterable[Summary], flush: Flush) -> str:
    """The summary over all runs and machines, and below it the speedups of every single comparison."""
    pairs = {(pair.host.identity, pair.device.identity): None for c in comparisons for pair in c.pairs}
    lines = [
        f"{len(comparisons)} held-out runs on {len(pairs)} pairs of machines, {flush} flush, emulator "
        f"{comparisons[0].emulator_version}; all times are modelled",
        *(f"  {comparison.model.title}" for comparison in comparisons),
        *(f"  {host} with {device}" for host, device in pairs),
        "",
    ]
    header = (
        "policy",
        "setting",
        "plan regret",
        "worst",
        "nest regret",
        "worst slowdown",
        "accuracy",
        "decisive",
        "coverage",
    )
    lines += table(header, (_summary_row(s) for s in summaries if s.flush == flush))
    lines += ["", "speedup of the whole plan over host-only code"]
    names = tuple(comparisons[0].pairs[0].policies)
    lines += table(("model", "host", "device", "setting", *names), _speedup_rows(comparisons, flush))
    return "\n".join(lines)


def _summary_row(summary: Summary) -> tuple[str, ...]:
    return (
        summary.policy,
        summary.setting,
        f"{100 * summary.plan_regret:.2f}%",
        f"{100 * summary.worst_plan_regret:.1f}%",
        f"{100 * summary.nest_regret:.2f}%",
        f"{summary.worst_slowdown:.2f}x",
        f"{summary.decisive_balanced_accuracy:.3f}",
        str(summary.decisive_nests),
        f"{100 * summary.coverage:.0f}%",
    )


def _speedup_rows(comparisons: Sequence[Comparison], flush: Flush) -> Iterable[tuple[str, ...]]:
    for comparison in comparisons:
        options = comparison.model.options
        name = f"{comparison.model.name} {options.get('phase', '')}".strip()
        length = options.get("sequence" if options.get("phase") == "prefill" else "context", "")
        for pair in comparison.pairs:
            speedups = (f"{result.speedup:.2f}x" for result in pair.results[flush].values())
            yield f"{name} {length}".strip(), pair.host.name, pair.device.name, setting_of(pair), *speedups
