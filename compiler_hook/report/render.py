"""Plans as text and as JSON-ready values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from torch_pim.compiler_hook.report.plan import Plan


def plan_json(plan: Plan) -> dict[str, Any]:
    """Plain values only; keys are the field names of Plan and PlanEntry."""
    return asdict(plan)


def render_plan(plan: Plan, limit: int | None = 40) -> str:
    """Summary, then one line per group of equal decisions of one nest, in program order; at most `limit` groups."""
    compute = plan.calls - plan.copies - plan.fills
    lines = [
        f"plan of {plan.name}: host {plan.host}, device {plan.device}, policy {plan.policy}",
        f"  {plan.calls} nest calls ({compute} compute, {plan.copies} copies, {plan.fills} fills), "
        f"{plan.unique_nests} unique nests, {plan.not_partitionable} not partitionable",
        f"  on PIM: {plan.on_pim} calls, {plan.switches} switches between the sides",
        f"  contractions: {plan.contraction_flops / 1e9:.3f} GFLOP, "
        f"weights read: {plan.weight_bytes_read / 1e6:.1f} MB",
        "",
    ]
    groups: dict[tuple[str, str, str], list[int]] = {}
    for entry in plan.entries:
        groups.setdefault((entry.nest, entry.side, entry.stage), []).append(entry.call)
    shown = list(groups.items())[:limit]
    rows = []
    for (nest, side, stage), calls in shown:
        entry = plan.entries[calls[0]]
        operators = ", ".join(op.removeprefix("aten.") for op in entry.aten_operators) or entry.site
        rows.append((nest, entry.kind, str(len(calls)), side, stage, _clip(operators, 44), entry.reason))
    lines += table(("nest", "kind", "calls", "side", "stage", "operators", "reason"), rows)
    if len(groups) > len(shown):
        lines.append(f"... {len(groups) - len(shown)} more groups; --json lists every call")
    return "\n".join(lines)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Left-aligned columns, as wide as their widest cell; numbers are right-aligned."""
    body = [tuple(row) for row in rows]
    columns = list(zip(header, *body, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    numeric = [all(_is_number(cell) for cell in column[1:]) and len(column) > 1 for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  " + "  ".join(padded).rstrip()

    return [line(tuple(header)), line(tuple("-" * width for width in widths)), *(line(row) for row in body)]


def _is_number(cell: str) -> bool:
    return (
        bool(cell)
        and cell.replace(".", "", 1).replace(",", "").removesuffix("x").removesuffix("%").lstrip("-").isdigit()
    )


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
