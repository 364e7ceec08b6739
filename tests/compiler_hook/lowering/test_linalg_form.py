"""The form of tensors before they become buffers: loop order, initial values, results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.features.nest import LoopNest

Lower = Callable[..., LoweredProgram]
LowerText = Callable[[str], LoweredProgram]


def nests(program: LoweredProgram) -> list[LoopNest]:
    return [nest.loop_nest for nest in program.concrete_nests()]


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (0, 1), (1, 2)], ids=str)
def test_reductions_run_inside_the_parallel_range(lower: Lower, dims: tuple[int, ...]) -> None:
    shape = (16, 20, 24)
    (nest,) = nests(lower(lambda x: x.sum(dims), torch.randn(shape)))
    kept = [size for d, size in enumerate(shape) if d not in dims]
    assert nest.partitionable
    assert [loop.trip for loop in nest.loops] == kept + [shape[d] for d in dims]
    assert [loop.kind for loop in nest.loops] == ["parallel"] * len(kept) + ["sequential"] * len(dims)


def test_index_operands_follow_the_loop_order(lower: Lower) -> None:
    """Arg-max over the first dimension reads the loop counter, which moves with the loop."""
    program = lower(lambda x: x.argmax(0), torch.randn(5, 7))
    (function,) = program.program.functions
    body = function.canonical
    counter = body.split("scf.for %", 1)[1].split(" ", 1)[0]
    assert f"arith.index_cast %{counter} : index to i64" in body


def test_each_accumulator_has_its_own_fill(lower: Lower) -> None:
    """Three products of one shape share a fill after CSE; without copies each needs its own."""

    def three(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x @ a, x @ b, x @ c

    found = nests(lower(three, torch.randn(8, 4), *(torch.randn(4, 6) for _ in range(3))))
    assert [nest.kind for nest in found] == ["compute"]
    program = lower(three, torch.randn(8, 4), *(torch.randn(4, 6) for _ in range(3)))
    assert len(program.specialised().calls) == 3


def test_a_shared_fill_that_is_reshaped_needs_no_copy(lower: Lower) -> None:
    def heads(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x @ a).view(2, 4, 3, 5), (x @ b).view(8, 15) + 1.0

    program = lower(heads, torch.randn(8, 6), torch.randn(6, 15), torch.randn(6, 15))
    kinds = [program.concrete_nests()[call.nest].loop_nest.kind for call in program.specialised().calls]
    assert "fill" not in kinds
    assert "copy" not in kinds


IDENTITY = "func.func @f(%a: tensor<4x4xf32>) -> {results} {{\n return {values} : {types} }}"
TENSOR = "tensor<4x4xf32>"


@pytest.mark.parametrize("count", [1, 2])
def test_a_returned_argument_is_copied(lower_text: LowerText, count: int) -> None:
    values, types = ", ".join(["%a"] * count), ", ".join([TENSOR] * count)
    program = lower_text(IDENTITY.format(results=f"({types})", values=values, types=types))
    specialised = program.specialised()
    roots = [result.root for result in specialised.results]
    assert len({*roots}) == count
    assert all(specialised.roots[root].kind == "temporary" for root in roots)
    assert [nest.loop_nest.kind for nest in specialised.nests] == ["copy"]
    assert len(specialised.calls) == count


def test_a_returned_constant_is_copied(lower_text: LowerText) -> None:
    text = """func.func @f() -> tensor<3xf32> {
      %c = arith.constant dense<[1., 2., 3.]> : tensor<3xf32>
      return %c : tensor<3xf32> }"""
    specialised = lower_text(text).specialised()
    (result,) = specialised.results
    assert specialised.roots[result.root].kind == "temporary"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1.0, x + 1.0),
        lambda x: (x.clone(), x * 2.0),
        lambda x: (y := x * 2.0, y.view(2, 8)),
        lambda x: (x.view(16), x.view(2, 8)),
    ],
    ids=["equal expressions", "clone", "view of a result", "views of an argument"],
)
def test_results_share_no_memory(lower: Lower, function: Callable[..., object]) -> None:
    specialised = lower(function, torch.randn(4, 4)).specialised()
    roots = [result.root for result in specialised.results]
    assert len({*roots}) == len(roots)
    assert all(specialised.roots[root].kind == "temporary" for root in roots)


def test_arguments_are_never_written(lower: Lower) -> None:
    def update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.slice_scatter(x, y, 0, 1, 3)

    specialised = lower(update, torch.randn(4, 4), torch.randn(2, 4)).specialised()
    written = [a.value for call in specialised.calls for a in call.arguments if a.stored]
    assert written
    assert all(specialised.roots[view.root].kind == "temporary" for view in written)
