"""Programs: each unique nest once, its call sites, its parameters, and the same text every time."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.lowered import LoweredProgram, lower_model
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, ScalarParameter
from torch_pim.compiler_hook.outline.program import Invoke, Program

Lower = Callable[..., LoweredProgram]
LowerText = Callable[[str], LoweredProgram]


def invokes(program: Program) -> list[Invoke]:
    return [step for step in program.steps if isinstance(step, Invoke)]


class Stack(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def test_equal_layers_are_one_function_with_all_its_call_sites() -> None:
    program = lower_model(Stack(5), (torch.randn(8, 16),)).program
    (function,) = program.functions
    assert function.loop_nest.multiplicity == 5
    assert len(function.loop_nest.call_sites) == len(set(function.loop_nest.call_sites)) == 5
    assert {"aten.mm.default", "aten.relu.default"} <= set(function.loop_nest.aten_operators)
    assert [step.site for step in invokes(program)] == list(function.loop_nest.call_sites)


def test_calls_chain_through_their_buffers() -> None:
    program = lower_model(Stack(3), (torch.randn(8, 16),)).program
    calls = invokes(program)
    for before, after in itertools.pairwise(calls):
        (made,) = {argument.value for argument in before.arguments if argument.stored and not argument.loaded} or {
            before.arguments[-1].value
        }
        assert made in {argument.value for argument in after.arguments if argument.loaded}


def test_other_shapes_are_other_functions(lower: Lower) -> None:
    program = lower(lambda x, y: (torch.exp(x), torch.exp(y)), torch.randn(4, 4), torch.randn(4, 5)).program
    assert len(program.functions) == 2


def test_code_hash_is_the_digest_of_the_text_and_repeats() -> None:
    first, second = (lower_model(Stack(2), (torch.randn(8, 16),)).program for _ in range(2))
    assert [f.code_hash for f in first.functions] == [f.code_hash for f in second.functions]
    assert [f.canonical for f in first.functions] == [f.canonical for f in second.functions]
    assert first == second
    for function in first.functions:
        assert function.code_hash == hashlib.sha256(function.canonical.encode()).hexdigest()
        assert function.loop_nest.code_hash == function.code_hash


def test_views_that_differ_in_their_offset_share_a_function(lower: Lower) -> None:
    def rows(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.exp(x[1:3]), torch.exp(x[4:6]), torch.exp(x[6:8])

    program = lower(rows, torch.randn(8, 16))
    (function,) = program.program.functions
    assert function.loop_nest.multiplicity == 3
    loaded = [p for p in function.parameters if isinstance(p, MemRefParameter) and p.offset is None]
    assert len(loaded) == 1
    assert len(program.specialised().nests) == 1
    offsets = [a.value.layout.offset for call in program.specialised().calls for a in call.arguments if a.loaded]
    assert offsets == [16, 64, 96]


def test_two_views_of_one_buffer_are_one_parameter(lower: Lower) -> None:
    """Generated code may take distinct parameters for distinct memory."""
    program = lower(lambda x: x[:4] * x[4:], torch.randn(8, 16))
    (call,) = program.specialised().calls
    roots = [argument.value.root for argument in call.arguments]
    assert len(roots) == len(set(roots)) == 2
    (function,) = program.program.functions
    assert function.canonical.count("memref.subview") >= 1


def test_arguments_of_one_call_never_share_memory() -> None:
    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y = x.view(4, 2, 16)
            return x[:4] + x[4:], F.softmax(x, 0) * x[0], y[:, 0] @ y[:, 1].t(), torch.cat([x[1:2], x[:1], x[1:2]])

    for call in lower_model(Mixed(), (torch.randn(8, 16),)).specialised().calls:
        roots = [a.value.root for a in call.arguments]
        assert len(roots) == len(set(roots))


def test_numbers_become_scalar_parameters(lower_text: LowerText) -> None:
    text = """func.func @f(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
          iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%x: f32, %o: f32):
        %y = arith.mulf %x, %s : f32
        linalg.yield %y : f32 } -> tensor<4xf32>
      return %r : tensor<4xf32> }"""
    program = lower_text(text).program
    (function,) = program.functions
    assert [p for p in function.parameters if isinstance(p, ScalarParameter)] == [ScalarParameter("f32")]


def test_operations_that_no_program_can_hold_are_named(lower_text: LowerText) -> None:
    text = """func.func @f(%n: index) -> tensor<?xf32> {
      %c1 = arith.constant 1 : index
      %m = arith.shli %n, %c1 : index
      %e = tensor.empty(%m) : tensor<?xf32>
      %z = arith.constant 0.0 : f32
      %r = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      return %r : tensor<?xf32> }"""
    with pytest.raises(LoweringError, match=r"arith\.shli at function level is not supported"):
        lower_text(text)


def test_golden_nests_of_a_small_model(golden: Callable[[str, str], None]) -> None:
    """A linear layer, a norm and an attention-like softmax: any change of the canonical form shows here."""

    class Tiny(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 12)
            self.norm = nn.LayerNorm(12)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = F.gelu(self.linear(self.norm(x.repeat(1, 3)[:, :12])[:, :8]))
            return torch.softmax(y @ y.t(), -1).sum()

    program = lower_model(Tiny(), (torch.randn(4, 8),)).program
    parts = [
        f"// {function.loop_nest.name}: {', '.join(function.loop_nest.aten_operators)}\n{function.canonical}"
        for function in program.functions
    ]
    golden("compiler_hook/tiny_model_nests.mlir", "\n".join(parts))
