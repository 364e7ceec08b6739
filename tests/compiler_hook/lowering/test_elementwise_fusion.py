"""Elementwise fusion does not repeat work: what a matmul or a broadcast would recompute stays outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.features.analysis.contractions import contractions
from torch_pim.features.nest import LoopNest

Lower = Callable[..., LoweredProgram]


def nests(program: LoweredProgram) -> list[LoopNest]:
    return [nest.loop_nest for nest in program.concrete_nests()]


def executed(nest: LoopNest, kind: str) -> float:
    """How many operations of a kind one execution carries out."""
    return sum(
        operation.count * nest.executions(operation.loop) for operation in nest.operations if operation.kind == kind
    )


def total(program: LoweredProgram, kind: str) -> float:
    return sum(executed(nest, kind) for nest in nests(program))


def test_silu_times_up_is_not_inside_the_next_matmul(lower: Lower) -> None:
    """Gate of a LLaMA block: one exponential per hidden element, not one per hidden element and output column."""

    def gate(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return (F.silu(x @ a) * (x @ b)) @ c

    program = lower(gate, torch.randn(32, 16), torch.randn(16, 24), torch.randn(16, 24), torch.randn(24, 20))
    assert total(program, "transcendental") == 32 * 24
    for nest in nests(program):
        for contraction in contractions(nest):
            operations = {o.kind for o in nest.operations if o.loop == contraction.result.loop}
            assert operations <= {"multiply", "add", "address"}


def test_rsqrt_of_a_norm_is_computed_once_per_row(lower: Lower) -> None:
    program = lower(lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), torch.randn(32, 64))
    assert total(program, "square_root") == 32


def test_a_norm_before_a_matmul_is_not_computed_per_column(lower: Lower) -> None:
    program = lower(
        lambda x, w, m: F.layer_norm(x, (64,), w) @ m, torch.randn(32, 64), torch.randn(64), torch.randn(64, 48)
    )
    assert total(program, "square_root") == 32
    assert [len(contractions(nest)) for nest in nests(program)] == [0, 1]


def test_a_cheap_expression_of_a_row_may_be_repeated_but_not_a_division(lower: Lower) -> None:
    cheap = lower(lambda x, y: x + (y + 1.0), torch.randn(32, 64), torch.randn(64))
    costly = lower(lambda x, y: x + 1.0 / y, torch.randn(32, 64), torch.randn(64))
    assert len(nests(cheap)) == 1
    assert total(costly, "divide") == 64


def test_chains_of_elementwise_operators_are_one_nest(lower: Lower) -> None:
    program = lower(lambda x, y: torch.relu(torch.exp(x) * y + 2.0), torch.randn(8, 9), torch.randn(8, 9))
    (nest,) = nests(program)
    assert len([access for access in nest.accesses if access.kind == "load"]) == 2
    assert len([access for access in nest.accesses if access.kind == "store"]) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x @ y.t(),
        lambda x, y: (y @ x.t()).t(),
        lambda x, y: F.linear(x, y),
        lambda x, y: (x.view(1, 32, 16) @ y.t()).view(32, 24),
    ],
    ids=["right", "both", "linear", "unit dimension"],
)
def test_transposes_fold_into_the_matmul(lower: Lower, function: Callable[..., torch.Tensor]) -> None:
    found = nests(lower(function, torch.randn(32, 16), torch.randn(24, 16)))
    assert [len(contractions(nest)) for nest in found if nest.kind == "compute"] == [1]
    # A transposed result has to be written out, an operand has not.
    assert all(nest.buffers[0].shape == (24, 32) for nest in found if nest.kind == "copy")


def test_a_weight_that_two_matmuls_share_is_transposed_by_neither(lower: Lower) -> None:
    program = lower(lambda x, w: F.linear(torch.relu(F.linear(x, w)), w), torch.randn(32, 16), torch.randn(16, 16))
    assert [nest.kind for nest in nests(program)] == ["compute", "compute"]


@pytest.mark.parametrize("stored", [torch.int8, torch.float16, torch.bfloat16])
def test_conversions_of_weights_fold_into_the_matmul(lower: Lower, stored: torch.dtype) -> None:
    weight = torch.ones(16, 24).to(stored)
    (nest,) = nests(lower(lambda x, w: x @ w.float(), torch.randn(32, 16), weight))
    (contraction,) = contractions(nest)
    assert contraction.macs == 32 * 16 * 24
    types = {access.element_type for access in (contraction.left, contraction.right)}
    assert types == {"f32", {torch.int8: "i8", torch.float16: "f16", torch.bfloat16: "bf16"}[stored]}


def test_an_expression_that_two_consumers_need_is_computed_once(lower: Lower) -> None:
    program = lower(lambda x, w: (torch.tanh(x) @ w, torch.tanh(x).sum(1)), torch.randn(32, 16), torch.randn(16, 24))
    assert total(program, "transcendental") == 32 * 16
