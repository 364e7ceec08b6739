"""Modules of other front ends, called with numpy arrays, tensors and numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_mlir import ir

import torch_pim
from torch_pim.compiler_hook.errors import FrontendError, LoweringError, OptionError, ShapeError
from torch_pim.compiler_hook.frontend.mlir_text import parse_linalg

ADD = """
func.func @double(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
MATMUL = """
func.func @matmul(%a: tensor<?x?xf64>, %b: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  %m = tensor.dim %a, %c0 : tensor<?x?xf64>
  %n = tensor.dim %b, %c1 : tensor<?x?xf64>
  %e = tensor.empty(%m, %n) : tensor<?x?xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<?x?xf64>) -> tensor<?x?xf64>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf64>, tensor<?x?xf64>) outs(%f : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %r : tensor<?x?xf64>
}"""
NUMBERS = """
func.func @numbers(%a: tensor<4xf32>, %i: index, %s: f32) -> (f32, index) {
  %x = tensor.extract %a[%i] : tensor<4xf32>
  %y = arith.mulf %x, %s : f32
  %j = arith.muli %i, %i : index
  return %y, %j : f32, index
}"""
CALLS = (
    ADD.replace("func.func @double", "func.func private @double")
    + """
func.func @four_times(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = call @double(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = call @double(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}"""
)


@pytest.fixture(scope="module")
def double() -> torch_pim.compiler_hook.api.LinalgFunction:
    return torch_pim.compile_linalg(ADD, policy="host")["double"]


def test_results_are_of_the_kind_of_the_arguments(double: object) -> None:
    x = np.arange(4, dtype=np.float32)
    (array,) = double(x)
    assert isinstance(array, np.ndarray)
    np.testing.assert_array_equal(array, 2 * x)
    (tensor,) = double(torch.from_numpy(x))
    assert isinstance(tensor, torch.Tensor)
    assert torch.equal(tensor, torch.from_numpy(2 * x))


def read_only() -> np.ndarray:
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "array",
    [
        np.arange(4, dtype=np.float32)[::-1],
        np.arange(8, dtype=np.float32)[::2],
        read_only(),
        np.zeros((4, 2), np.float32)[:, 1],
    ],
    ids=["reversed", "every other", "read-only", "column"],
)
def test_arrays_of_any_layout(double: object, array: np.ndarray) -> None:
    (result,) = double(array)
    np.testing.assert_array_equal(result, 2 * array)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (np.zeros(5, np.float32), "has shape 5, compiled for 4"),
        (np.zeros(4), "is torch.float64, compiled for torch.float32"),
        (np.float32(2.0), "argument 0 must be a tensor"),
        ("text", "argument 0 is a str; expected a numpy array, tensor or number"),
        (None, "argument 0 is a NoneType"),
    ],
)
def test_arguments_that_do_not_fit(double: object, argument: object, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        double(argument)


@pytest.mark.parametrize("sizes", [(2, 3, 4), (7, 1, 5), (1, 1, 1), (3, 0, 2)])
def test_dynamic_matmul(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(m, k)), generator.normal(size=(k, n))
    (result,) = torch_pim.compile_linalg(MATMUL, policy="pim")["matmul"](a, b)
    np.testing.assert_allclose(result, a @ b, atol=1e-12)


def test_numbers_go_in_and_come_out() -> None:
    function = torch_pim.compile_linalg(NUMBERS, policy="host")["numbers"]
    assert function(np.array([1, 2, 3, 4], np.float32), 3, 2.5) == [10.0, 9]
    assert function(np.array([1, 2, 3, 4], np.float32), np.int64(1), np.float32(0.5)) == [1.0, 1]


def test_calls_between_functions() -> None:
    functions = torch_pim.compile_linalg(CALLS, policy="host")
    assert set(functions) == {"four_times"}
    np.testing.assert_array_equal(functions["four_times"](np.ones(4, np.float32))[0], np.full(4, 4.0))


def test_several_public_functions() -> None:
    functions = torch_pim.compile_linalg(ADD + MATMUL, policy="host")
    assert set(functions) == {"double", "matmul"}
    assert functions["double"].plan == ()
    functions["double"](np.ones(4, np.float32))
    assert functions["double"].plan[0].name == "double"


def test_modules_come_as_text_path_or_object(tmp_path: Path) -> None:
    path = tmp_path / "double.mlir"
    path.write_text(ADD)
    x = np.ones(4, np.float32)
    module = parse_linalg(ADD)
    text = str(module)
    for source in (ADD, path, module):
        np.testing.assert_array_equal(torch_pim.compile_linalg(source, policy="host")["double"](x)[0], 2 * x)
    assert str(module) == text


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("func.func @f( {", FrontendError, "module text: not valid MLIR: .*expected"),
        ("", LoweringError, "the module has no public function with a body"),
        ("func.func private @f()", LoweringError, "the module has no public function with a body"),
    ],
)
def test_modules_that_cannot_be_compiled(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        torch_pim.compile_linalg(text, policy="host")


def test_missing_file_and_unknown_option(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match=r"absent\.mlir: no such file; expected a linalg-on-tensors \.mlir file"):
        torch_pim.compile_linalg(tmp_path / "absent.mlir", policy="host")
    with pytest.raises(OptionError, match="polcy"):
        torch_pim.compile_linalg(ADD, polcy="host")


def test_a_module_object_of_another_context_is_copied() -> None:
    with ir.Context():
        module = ir.Module.parse("module {\n" + ADD + "\n}")
        copy = parse_linalg(module)
    assert copy.context is not module.context
