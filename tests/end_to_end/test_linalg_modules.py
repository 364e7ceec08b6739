"""A module of another front end, from text to results: several functions, kinds of arguments and wrong input."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch

import torch_pim
from torch_pim.compiler_hook.api import LinalgFunction
from torch_pim.compiler_hook.errors import FrontendError, LoweringError, NestAssertionError, ShapeError

MODULE = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func @scale(%x: tensor<?x4xf32>, %factor: f32) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %empty = tensor.empty(%rows) : tensor<?x4xf32>
  %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %product = arith.mulf %a, %factor : f32
    linalg.yield %product : f32
  } -> tensor<?x4xf32>
  return %result : tensor<?x4xf32>
}

func.func @product(%a: tensor<70x5xf32>, %b: tensor<5x2xf32>) -> (tensor<70x2xf32>, tensor<70x5xf32>, f32, index, i64) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<70x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<70x2xf32>) -> tensor<70x2xf32>
  %result = linalg.matmul ins(%a, %b : tensor<70x5xf32>, tensor<5x2xf32>)
      outs(%start : tensor<70x2xf32>) -> tensor<70x2xf32>
  %one = arith.constant 1 : index
  %element = tensor.extract %result[%one, %one] : tensor<70x2xf32>
  %seven = arith.constant 7 : i64
  return %result, %a, %element, %one, %seven : tensor<70x2xf32>, tensor<70x5xf32>, f32, index, i64
}

func.func @double_into(%source: memref<4xf32>, %target: memref<4xf32>) {
  linalg.add ins(%source, %source : memref<4xf32>, memref<4xf32>) outs(%target : memref<4xf32>)
  return
}

func.func @pick(%table: tensor<3x2xf32>, %rows: tensor<4xi32>) -> tensor<4x2xf32> {
  %empty = tensor.empty() : tensor<4x2xf32>
  %result = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<4xi32>) outs(%empty : tensor<4x2xf32>) {
  ^bb0(%row: i32, %out: f32):
    %index = arith.index_cast %row : i32 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%index, %column] : tensor<3x2xf32>
    linalg.yield %element : f32
  } -> tensor<4x2xf32>
  return %result : tensor<4x2xf32>
}

func.func private @hidden(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
"""


@pytest.fixture(scope="module", params=["host", "pim"])
def functions(request: pytest.FixtureRequest) -> Mapping[str, LinalgFunction]:
    return torch_pim.compile_linalg(MODULE, policy=request.param)


def test_public_functions_by_name(functions: Mapping[str, LinalgFunction]) -> None:
    assert list(functions) == ["scale", "product", "double_into", "pick"]
    assert all(function.name == name for name, function in functions.items())


def test_several_results_of_several_kinds(functions: Mapping[str, LinalgFunction]) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((70, 5), dtype=np.float32), random.standard_normal((5, 2), dtype=np.float32)
    result, copy, element, one, seven = functions["product"](a, b)
    np.testing.assert_allclose(result, a @ b, rtol=1e-5, atol=1e-6)
    assert element == pytest.approx((a @ b)[1, 1], rel=1e-5)
    assert (one, seven) == (1, 7)
    # A result that is an argument is a copy: writing to it leaves the argument alone.
    np.testing.assert_array_equal(copy, a)
    copy[0, 0] += 1.0
    assert copy[0, 0] != a[0, 0]


def test_numpy_in_numpy_out_and_tensors_likewise(functions: Mapping[str, LinalgFunction]) -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    (array,) = functions["scale"](x, 2.0)
    assert isinstance(array, np.ndarray)
    np.testing.assert_array_equal(array, 2.0 * x)
    (tensor,) = functions["scale"](torch.from_numpy(x).flip(0), np.float32(0.5))
    assert torch.equal(tensor, torch.from_numpy(x).flip(0) * 0.5)
    (strided,) = functions["scale"](np.asfortranarray(x)[::2], 3)
    np.testing.assert_array_equal(strided, 3.0 * x[::2])


def test_a_memref_argument_is_written_in_place(functions: Mapping[str, LinalgFunction]) -> None:
    source, target = np.arange(4.0, dtype=np.float32), np.zeros(4, np.float32)
    assert functions["double_into"](source, target) == []
    np.testing.assert_array_equal(target, [0.0, 2.0, 4.0, 6.0])


def test_each_shape_is_placed_at_its_first_call() -> None:
    scale = torch_pim.compile_linalg(MODULE, policy="pim")["scale"]
    assert scale.plan == ()
    for rows in (3, 200, 3, 0):
        x = np.ones((rows, 4), np.float32)
        np.testing.assert_array_equal(scale(x, 2.0)[0], 2.0 * x)
    assert [plan.entries[0].parallel_trip for plan in scale.plan[:2]] == [12, 800]
    assert len(scale.plan) == 3


def test_an_index_from_data_that_is_out_of_range(functions: Mapping[str, LinalgFunction]) -> None:
    table = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    rows = np.array([2, 0, 1, 1], np.int32)
    np.testing.assert_array_equal(functions["pick"](table, rows)[0], table[rows])
    for wrong in (3, -1, 2**30):
        with pytest.raises(NestAssertionError, match="out of range for a dimension of size 3"):
            functions["pick"](table, np.array([0, wrong, 0, 0], np.int32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((3, 5), np.float32), 1.0), r"scale: argument 0 has shape 3x5, compiled for \?x4"),
        ((np.zeros(3, np.float32), 1.0), r"scale: argument 0 has shape 3, compiled for \?x4"),
        ((np.zeros((3, 4)), 1.0), r"scale: argument 0 is torch\.float64, compiled for torch\.float32"),
        ((np.zeros((3, 4), np.float32),), r"scale: 1 arguments given, 2 expected"),
        ((1.0, np.zeros((3, 4), np.float32)), r"scale: argument 0 must be a tensor"),
        ((np.zeros((3, 4), np.float32), "2"), r"scale: argument 1 is a str"),
        (([[1.0] * 4], 1.0), r"scale: argument 0 is a list; expected a numpy array, tensor or number"),
    ],
    ids=["size", "rank", "dtype", "missing", "kind", "text", "list"],
)
def test_wrong_arguments(functions: Mapping[str, LinalgFunction], arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        functions["scale"](*arguments)


def _identity(kind: str) -> str:
    return f"func.func @f(%x: {kind}) -> {kind} {{ return %x : {kind} }}"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("this is no MLIR", FrontendError, "not valid MLIR"),
        (
            "func.func @f() -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}",
            FrontendError,
            r"undeclared SSA value.*2:10",
        ),
        (_identity("tensor<4xf33>"), FrontendError, "not valid MLIR"),
        (
            _identity("tensor<4xcomplex<f32>>"),
            LoweringError,
            r"element type complex<f32> is not supported; supported: f64",
        ),
        (_identity("tensor<4xf8E4M3FN>"), LoweringError, "element type f8E4M3FN is not supported"),
        (_identity("tensor<4xi4>"), LoweringError, "element type i4 is not supported"),
        ("", LoweringError, "no public function"),
    ],
    ids=["text", "undeclared", "no type", "complex", "f8", "i4", "empty"],
)
def test_modules_that_cannot_be_compiled(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        torch_pim.compile_linalg(text, policy="host")
