"""The demo as text: a block per case with every policy, a summary of speedups, and the execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_pim.compiler_hook.report.render import table
from torch_pim.experiments.comparison.records import PairComparison
from torch_pim.experiments.comparison.render import number, time_unit
from torch_pim.experiments.demo.execution import ExecutionResult
from torch_pim.experiments.demo.run import ComparedCase
from torch_pim.models.transitions import Flush

FLUSH_TITLES: dict[Flush, str] = {
    "serial": "flush serial: dirty cache lines are written back one by one at each change of side",
    "bandwidth": "flush bandwidth: dirty cache lines are written back as fast as the memory takes them",
}


READING = (
    "  How to read this: copies are nests that only move data; unique counts different nests, each decided once.",
    "  oracle takes the faster side of every nest by itself, optimum the best plan (two counts where it differs",
    "  between the flush models). Policies that decide nest by nest, learned among them, do not see the flushes",
    "  between nests; learned+residency does, assuming serial ones. 'matrix from host' is a matrix that the caller",
    "  has just written, 'resident' one that lies in memory, as weights do.",
)


def render_case(case: ComparedCase) -> str:
    """Counts, then one line per policy under both flush models."""
    if case.comparison is None:
        return f"{case.case.label}: left out, because {case.left_out}"
    (pair,) = case.comparison.pairs
    unit, divisor = time_unit(min(result.plan.total_ns for result in pair.policies.values()))
    header = ["policy", "on PIM", "switches"]
    for flush in pair.results:
        header += [f"{flush} [{unit}]", "speedup"]
    return "\n".join([f"{case.case.label}: {pair.counts}", *table(header, _policy_rows(pair, divisor))])


def _policy_rows(pair: PairComparison, divisor: float) -> Iterable[tuple[str, ...]]:
    for name in pair.policies:
        results = [of_flush[name] for of_flush in pair.results.values()]
        plans = [result.plan for result in results]
        cells = [name, _each(plan.placed_on_pim for plan in plans), _each(plan.switches for plan in plans)]
        for result in results:
            cells += [number(result.plan.total_ns / divisor), f"{result.speedup:.2f}x"]
        yield tuple(cells)


def _each(counts: Iterable[int]) -> str:
    """One number where it is the same under all flush models: only the optimum looks at them."""
    return " / ".join(map(str, dict.fromkeys(counts)))


def render_summary(cases: Sequence[ComparedCase]) -> str:
    """Speedup over host-only of every policy on every case, one table per flush model."""
    pairs = [(case.case.label, case.comparison.pairs[0]) for case in cases if case.comparison is not None]
    if not pairs:
        return "no case could be compared"
    host, device = pairs[0][1].host.name, pairs[0][1].device.name
    lines = [f"modelled speedup over everything on host {host}, device {device}, f32, batch 1, no profiles"]
    for flush, title in FLUSH_TITLES.items():
        names = tuple(pairs[0][1].results[flush])
        rows = [(label, *(f"{pair.results[flush][name].speedup:.2f}x" for name in names)) for label, pair in pairs]
        lines += ["", f"  {title}", *table(("model", *names), rows)]
    return "\n".join([*lines, "", *READING])


def render_execution(result: ExecutionResult) -> str:
    return (
        f'{result.model} executed by torch.compile(backend="torch_pim"), policy {result.policy}: '
        f"{result.calls_on_pim} of {result.calls} nests ran on the cores of {result.device},\n"
        f"  largest error against PyTorch eager {result.largest_error:.2e} (largest output {result.largest_output:.2e})"
    )
