"""Plans: counts, FLOPs, bytes of weights, and their text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_pim.compiler_hook.compiled_graph import PlacedProgram
from torch_pim.compiler_hook.lowered import LoweredProgram, lower_model
from torch_pim.compiler_hook.report.plan import Plan, contraction_flops, plan_of, switches, weight_bytes_read
from torch_pim.compiler_hook.report.render import plan_json, render_plan, table
from torch_pim.features.placement import Decision, Placement, Side
from torch_pim.features.specs import load_device, load_host

Lower = Callable[..., LoweredProgram]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 32)
        self.first = nn.Linear(32, 64)
        self.second = nn.Linear(64, 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        return F.pad(self.second(torch.relu(self.first(x))), (0, 1)) + self.second.weight.sum()


TOKENS = torch.randint(0, 1000, (5,), generator=torch.Generator().manual_seed(0))


def placed(program: LoweredProgram, sides: Callable[[int], Side]) -> PlacedProgram:
    host, device = load_host("cpu-8c"), load_device("ndp-hmc-64")
    problem = program.problem(host, device)
    decisions = tuple(
        Decision(sides(i), "fixed", "test", "because", 0.75 if sides(i) == "pim" else None)
        for i in range(len(problem.calls))
    )
    return PlacedProgram(program.specialised(), problem, Placement(decisions, "test", "f1"), program.weights)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(placed(lower_model(Model(), (TOKENS,)), lambda call: "pim" if call == 1 else "host"))


def test_counts(plan: Plan) -> None:
    assert plan.calls == len(plan.entries) == sum(plan.stages.values())
    assert [entry.call for entry in plan.entries] == list(range(plan.calls))
    assert plan.copies == sum(entry.kind == "copy" for entry in plan.entries) == 1
    assert plan.fills == sum(entry.kind == "fill" for entry in plan.entries) == 1
    assert plan.not_partitionable == 1
    assert plan.unique_nests <= plan.calls
    assert plan.on_pim == 1
    assert plan.switches == 2
    assert plan.stages == {"fixed": plan.calls}
    assert (plan.host, plan.device, plan.policy, plan.fingerprint) == ("cpu-8c", "ndp-hmc-64", "test", "f1")


def test_entries_tell_where_they_come_from(plan: Plan) -> None:
    assert plan.entries[0].aten_operators == ("aten.embedding.default",)
    assert plan.entries[0].parallel_trip == 5 * 32
    assert {entry.score for entry in plan.entries} == {0.75, None}


def test_flops_are_two_per_multiply_add(plan: Plan) -> None:
    assert plan.contraction_flops == 2 * 5 * 32 * 64 * 2


def test_gathered_tables_count_by_rows(plan: Plan) -> None:
    model = Model()
    linear = sum(p.nbytes for layer in (model.first, model.second) for p in layer.parameters())
    rows = len(TOKENS) * 32 * 4
    assert plan.weight_bytes_read == pytest.approx(linear + rows, rel=0.01)


def test_a_weight_counts_once_however_often_it_is_read(lower: Lower) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(16, 16, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(self.linear(self.linear(x)))

    program = lower_model(Tied(), (torch.randn(4, 16),))
    assert weight_bytes_read(program.specialised(), program.weights) == 16 * 16 * 4
    assert contraction_flops(program.specialised()) == 3 * 2 * 4 * 16 * 16


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ([], 0),
        (["host"], 0),
        (["pim"], 2),
        (["pim", "pim"], 2),
        (["pim", "host", "pim"], 4),
        (["host", "pim", "host"], 2),
    ],
)
def test_switches_count_from_host_to_host(sides: list[Side], expected: int) -> None:
    assert switches(sides) == expected


def test_a_program_without_nests(lower: Lower) -> None:
    @dataclass
    class Nothing:
        pass

    text = lower(lambda x: (x + 1.0)[:0], torch.randn(4))
    empty = plan_of(placed(text, lambda _: "host"))
    assert empty.calls == 0
    assert "0 nest calls" in render_plan(empty)


def test_rendered_plan(plan: Plan) -> None:
    text = render_plan(plan)
    assert "plan of main: host cpu-8c, device ndp-hmc-64, policy test" in text
    assert f"{plan.calls} nest calls" in text
    assert "on PIM: 1 calls, 2 switches between the sides" in text
    assert "weights read: 0.0 MB" in text
    assert all(line == line.rstrip() for line in text.splitlines())
    rows = [line for line in text.splitlines() if "because" in line]
    assert len(rows) == len({(e.nest, e.side, e.stage) for e in plan.entries})


def test_rendered_plan_is_cut_where_asked(plan: Plan) -> None:
    text = render_plan(plan, limit=2)
    assert len([line for line in text.splitlines() if "because" in line]) == 2
    assert f"... {plan.unique_nests - 2} more groups; --json lists every call" in text


def test_json_holds_plain_values(plan: Plan) -> None:
    restored = json.loads(json.dumps(plan_json(plan)))
    assert restored["calls"] == plan.calls
    assert restored["entries"][1]["side"] == "pim"
    assert restored["entries"][0]["aten_operators"] == ["aten.embedding.default"]


def test_tables_align_words_left_and_numbers_right() -> None:
    assert table(("name", "calls"), [("a", "7"), ("bcd", "1,200"), ("e", "")][:2]) == [
        "  name  calls",
        "  ----  -----",
        "  a         7",
        "  bcd   1,200",
    ]
