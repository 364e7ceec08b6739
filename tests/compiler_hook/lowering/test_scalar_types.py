"""Python numbers meet a tensor in the tensor's type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import torch_pim
from torch_pim.compiler_hook.lowered import LoweredProgram

Lower = Callable[..., LoweredProgram]


def many(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Operators that meet a Python number, of the user or of the operator's own."""
    return (
        x * 0.1,
        x < 0.1,
        0.1 >= x,
        torch.where(x == 0.5, 1.0, x),
        F.leaky_relu(x, 0.01),
        F.scaled_dot_product_attention(x[None], x[None], x[None]),
        F.layer_norm(x, (8,), eps=1e-6),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_no_f64_in_narrow_models(lower: Lower, dtype: torch.dtype) -> None:
    functions = lower(many, torch.randn(8, 8).to(dtype)).program.functions
    assert len(functions) > 7
    assert not any("f64" in nest.canonical for nest in functions)


def test_f64_models_stay_f64(lower: Lower) -> None:
    (nest,) = lower(lambda x: torch.where(x < 0.1, x * 0.1, x), torch.randn(8, dtype=torch.float64)).program.functions
    assert "f32" not in nest.canonical
    assert repr(0.1) in nest.canonical or "1.000000e-01 : f64" in nest.canonical


@pytest.mark.parametrize(("dtype", "shown"), [(torch.float32, "0.1"), (torch.float16, "9.997550e-02")])
def test_a_number_is_rounded_once_to_nearest(lower: Lower, dtype: torch.dtype, shown: str) -> None:
    (nest,) = lower(lambda x: x * 0.1, torch.randn(8).to(dtype)).program.functions
    line = next(
        line for line in nest.canonical.splitlines() if "arith.constant" in line and ".f" not in line and "e-" in line
    )
    number = float(line.split("arith.constant ")[1].split(" :")[0])
    assert number == pytest.approx(float(np.float32(0.1) if dtype == torch.float32 else np.float16(0.1)), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_comparisons_at_the_border_agree_with_pytorch(dtype: torch.dtype) -> None:
    x = torch.tensor([0.1, 0.2, 0.3], dtype=dtype)

    def border(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x < 0.1, x <= 0.1, x == 0.2, x > 0.3, x >= 0.3, 0.1 < x

    torch._dynamo.reset()
    for got, expected in zip(torch_pim.compile(border, policy="host")(x), border(x), strict=True):
        assert torch.equal(got, expected)


def test_modules_of_other_front_ends_keep_their_own_precision() -> None:
    text = """func.func @f(%a: tensor<1xf32>) -> tensor<1xi1> {
      %c = arith.constant 0.1 : f64
      %e = tensor.empty() : tensor<1xi1>
      %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
          iterator_types = ["parallel"]} ins(%a : tensor<1xf32>) outs(%e : tensor<1xi1>) {
      ^bb0(%x: f32, %o: i1):
        %w = arith.extf %x : f32 to f64
        %s = arith.cmpf ogt, %w, %c : f64
        linalg.yield %s : i1 } -> tensor<1xi1>
      return %r : tensor<1xi1> }"""
    # As f64, the f32 next to 0.1 is above it.
    (result,) = torch_pim.compile_linalg(text, policy="host")["f"](np.array([0.1], dtype=np.float32))
    assert result.tolist() == [True]
