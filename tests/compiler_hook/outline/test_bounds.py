"""Sizes that do not agree are refused before a nest runs over the end of a buffer."""

from __future__ import annotations

import numpy as np
import pytest

import torch_pim
from torch_pim.compiler_hook.errors import FrontendError, ShapeError

ADD = """
func.func @add(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %size = tensor.dim %a, %zero : tensor<?xf32>
  %empty = tensor.empty(%size) : tensor<?xf32>
  %sum = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
"""


@pytest.mark.parametrize("policy", ["host", "pim"])
def test_operands_of_different_size(policy):
    add = torch_pim.compile_linalg(ADD, policy=policy)["add"]
    np.testing.assert_array_equal(add(np.ones(64, "f4"), np.ones(64, "f4"))[0], np.full(64, 2, "f4"))
    with pytest.raises(ShapeError, match=r"add: sizes do not agree .* shape 5 is too small .*64, 5, 64"):
        add(np.zeros(64, "f4"), np.ones(5, "f4"))
    np.testing.assert_array_equal(add(np.ones(5, "f4"), np.ones(5, "f4"))[0], np.full(5, 2, "f4"))


def test_a_string_that_ends_in_mlir_is_a_path(tmp_path):
    file = tmp_path / "add.mlir"
    file.write_text(ADD)
    assert list(torch_pim.compile_linalg(str(file), policy="host")) == ["add"]
    with pytest.raises(FrontendError, match=r"nosuch\.mlir: no such file"):
        torch_pim.compile_linalg(str(tmp_path / "nosuch.mlir"))
    with pytest.raises(FrontendError, match=r"expected MLIR text, .* got int"):
        torch_pim.compile_linalg(5)
