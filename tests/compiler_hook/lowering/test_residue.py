"""What is no parallel loop becomes a nest as well: nothing runs uncounted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim
from torch_mlir import ir

import torch_pim
from torch_pim.compiler_hook.errors import FrontendError, LoweringError
from torch_pim.compiler_hook.frontend.export import export_graph
from torch_pim.compiler_hook.frontend.graph_import import graph_to_linalg
from torch_pim.compiler_hook.frontend.mlir_text import parse_linalg
from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.compiler_hook.lowering import linalg_to_loops
from torch_pim.compiler_hook.lowering.passes import entry_block, functions
from torch_pim.compiler_hook.lowering.residue import SPILL
from torch_pim.compiler_hook.outline.layout import contiguous
from torch_pim.compiler_hook.outline.nest_function import ScalarParameter
from torch_pim.compiler_hook.outline.program import LoadScalar, StoreScalar, View

Lower = Callable[..., LoweredProgram]
LowerText = Callable[[str], LoweredProgram]


def top_level(module: ir.Module) -> list[ir.Operation]:
    linalg_to_loops(module)
    (function,) = functions(module)
    return [view.operation for view in entry_block(function).operations]


class Everything(torch.nn.Module):
    """Operators that leave sequential code and scalars at function level."""

    def forward(self, x: torch.Tensor, classes: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.sum(),
            F.mse_loss(x, x * 2.0),
            F.cross_entropy(x, classes),
            x.cumsum(0),
            torch.topk(x, 2).values,
            x.index_add(0, classes, rows),
            x[:1].mean(1),
            F.embedding(classes[:1], x),
        )


def test_every_access_at_function_level_is_inside_a_nest() -> None:
    arguments = (torch.randn(6, 8), torch.randint(0, 6, (6,)), torch.randn(6, 8))
    with torch.no_grad():
        module = graph_to_linalg(export_graph(Everything(), arguments).graph)
    operations = top_level(module)
    assert sum(op.name == "scf.execute_region" for op in operations) >= 4
    for op in operations:
        touches_memory = op.name in ("memref.load", "memref.store", "memref.copy", "scf.for", "scf.if", "scf.while")
        assert not touches_memory or SPILL in op.attributes, op
        assert not op.name.startswith(("linalg.", "tensor.", "math.", "bufferization.", "tm_tensor.")), op


@pytest.mark.parametrize("function", [lambda x: x.sum(), lambda x: F.mse_loss(x, x + 1.0)], ids=["sum", "mse loss"])
def test_a_full_reduction_is_one_nest_with_its_scalar_code(lower: Lower, function: Callable[..., object]) -> None:
    program = lower(function, torch.randn(8, 8))
    (nest,) = program.concrete_nests()
    assert not nest.loop_nest.partitionable
    assert len(program.specialised().calls) == 1


def test_a_scalar_that_other_nests_need_goes_through_memory(lower: Lower) -> None:
    program = lower(lambda x: x / x.sum(), torch.randn(8, 8))
    first, second = program.specialised().calls
    stored = {argument.value.root for argument in first.arguments if argument.stored}
    loaded = {argument.value.root for argument in second.arguments if argument.loaded}
    assert stored & loaded


SPILLED = """
func.func @f(%a: tensor<4xf32>) -> (f32, tensor<4xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = tensor.extract %a[%c0] : tensor<4xf32>
  %y = tensor.extract %a[%c1] : tensor<4xf32>
  %s = arith.addf %x, %y : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]}} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {{
  ^bb0(%v: f32, %o: f32):
    %w = arith.mulf %v, %s : f32
    linalg.yield %w : f32 }} -> tensor<4xf32>
  return %{result}, %r : f32, tensor<4xf32>
}}"""


def test_a_scalar_with_several_users_is_stored_once(lower_text: LowerText) -> None:
    program = lower_text(SPILLED.format(result="s"))
    sums, scaled = program.specialised().calls
    assert not program.concrete_nests()[sums.nest].loop_nest.partitionable
    (spilled,) = [argument.value for argument in sums.arguments if argument.stored]
    assert spilled.layout.shape == ()
    assert spilled.root in {a.value.root for a in scaled.arguments if a.loaded}
    assert program.specialised().results[0] == spilled


def test_shape_arithmetic_is_no_nest(lower: Lower) -> None:
    program = lower(lambda x: x.flatten() + 1.0, torch.randn(4, 6), dynamic_shapes=({0: Dim("n", min=2)},))
    (nest,) = program.program.functions
    assert nest.loop_nest.kind == "compute"
    assert program.specialised([contiguous((5, 6))]).results[0].layout.shape == (30,)


def test_shape_tensors_are_bookkeeping(lower: Lower) -> None:
    """Attention with a dynamic length reshapes through a tensor of sizes, which no nest may fill."""
    n = Dim("n", min=2)
    arguments = [torch.randn(2, 3, 8, 4) for _ in range(3)]
    program = lower(F.scaled_dot_product_attention, *arguments, dynamic_shapes=({2: n}, {2: n}, {2: n}))
    steps = program.program.steps
    assert any(isinstance(step, StoreScalar) for step in steps)
    assert any(isinstance(step, View) and step.kind == "reshape" for step in steps) or any(
        isinstance(step, LoadScalar) for step in steps
    )
    specialised = program.specialised([contiguous((2, 3, 5, 4))] * 3)
    assert specialised.results[0].layout.shape == (2, 3, 5, 4)
    assert all(nest.loop_nest.partitionable for nest in specialised.nests)


SIZES = """
func.func @f(%a: tensor<?x4xf32>, %n: i64, %s: f32) -> tensor<?x4xf32> {{
  %c0 = arith.constant 0 : index
  %i = arith.constant {index} : index
  %half = arith.constant 0.5 : f32
  %d = tensor.dim %a, %c0 : tensor<?x4xf32>
  %sizes = tensor.from_elements %d, %d : tensor<2xindex>
  %size = tensor.extract %sizes[%i] : tensor<2xindex>
  %t = arith.mulf %s, %half : f32
  %e = tensor.empty(%d) : tensor<?x4xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d, e) -> (d, e)>, affine_map<(d, e) -> (d, e)>],
      iterator_types = ["parallel", "parallel"]}} ins(%a : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {{
  ^bb0(%x: f32, %o: f32):
    %k = arith.index_cast %size : index to i64
    %m = arith.addi %k, %n : i64
    %f = arith.sitofp %m : i64 to f32
    %y = arith.mulf %x, %f : f32
    %z = arith.addf %y, %t : f32
    linalg.yield %z : f32 }} -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}}"""


def test_numbers_that_layouts_give_are_computed_outside(lower_text: LowerText) -> None:
    """A nest gets them as numbers: a shape tensor is no memory that it could read."""
    program = lower_text(SIZES.format(index=1))
    (function,) = program.program.functions
    assert sum(isinstance(parameter, ScalarParameter) for parameter in function.parameters) >= 3
    numbers = [a.value for a in program.specialised([contiguous((3, 4)), 5, 3.0]).calls[0].arguments]
    assert 1.5 in [number for number in numbers if isinstance(number, float)]


def test_sizes_inside_a_nest_have_their_values() -> None:
    function = torch_pim.compile_linalg(SIZES.format(index=1), policy="pim")["f"]
    (result,) = function(torch.ones(3, 4), 5, 3.0)
    assert torch.equal(result, torch.full((3, 4), 3.0 + 5.0 + 1.5))


@pytest.mark.parametrize("shape", [(2, 2, 2, 3), (3, 4, 5, 6)])
def test_matmul_of_dynamic_batches(shape: tuple[int, ...]) -> None:
    """Its inner loop runs to a size that goes through a shape tensor."""

    def scores(x: torch.Tensor) -> torch.Tensor:
        return x @ x.transpose(-1, -2)

    torch._dynamo.reset()
    x = torch.randn(shape)
    torch.testing.assert_close(torch_pim.compile(scores, policy="pim", dynamic=True)(x), scores(x))


@pytest.mark.parametrize(
    "function",
    [lambda x: torch.nonzero(x), lambda x: x[x[:, 0].argmax()], lambda x: x.repeat_interleave(x[:, 0].long().abs(), 0)],
    ids=["nonzero", "row of a maximum", "repeats"],
)
def test_sizes_that_depend_on_data_are_refused(lower: Lower, function: Callable[..., object]) -> None:
    with pytest.raises((LoweringError, FrontendError)):
        lower(function, torch.ones(4, 4))


def test_a_view_at_a_computed_offset_says_why_it_is_refused(lower_text: LowerText) -> None:
    text = """func.func @f(%a: tensor<8xf32>, %i: tensor<1xindex>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %o = tensor.extract %i[%c0] : tensor<1xindex>
      %s = tensor.extract_slice %a[%o] [4] [1] : tensor<8xf32> to tensor<4xf32>
      return %s : tensor<4xf32> }"""
    with pytest.raises(LoweringError, match=r"offset of a view depends on the values of a tensor"):
        lower_text(text)


def test_a_branch_over_whole_tensors_is_refused(lower_text: LowerText) -> None:
    text = """func.func @f(%a: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
      %r = scf.if %p -> (tensor<4xf32>) { scf.yield %a : tensor<4xf32> } else {
        %e = tensor.empty() : tensor<4xf32>
        %s = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
        scf.yield %s : tensor<4xf32> }
      return %r : tensor<4xf32> }"""
    with pytest.raises(LoweringError, match=r"scf.if at function level has a tensor as its result"):
        lower_text(text)


def test_assertions_about_data_are_part_of_a_nest() -> None:
    text = """func.func @f(%a: tensor<1xi64>) -> tensor<1xi64> {
      %c0 = arith.constant 0 : index
      %z = arith.constant 0 : i64
      %x = tensor.extract %a[%c0] : tensor<1xi64>
      %p = arith.cmpi sge, %x, %z : i64
      cf.assert %p, "negative"
      %r = tensor.from_elements %x : tensor<1xi64>
      return %r : tensor<1xi64> }"""
    module = parse_linalg(text)
    operations = top_level(module)
    assert "cf.assert" not in [op.name for op in operations]
    (nest,) = [op for op in operations if op.name == "scf.execute_region"]
    assert "negative" in str(nest)
