"""Our decompositions against PyTorch's own operators, run as plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from torch_pim.compiler_hook.frontend import normalisations
from torch_pim.compiler_hook.frontend.activations import gelu
from torch_pim.compiler_hook.frontend.attention import attention, log_softmax, safe_softmax, softmax
from torch_pim.compiler_hook.frontend.decompositions import decomposition_table
from torch_pim.compiler_hook.frontend.transformer_layer import transformer_encoder_layer

TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}
DTYPES = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=lambda dtype: str(dtype).removeprefix("torch."))


def sample(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def assert_same(ours: Any, stock: Any) -> None:
    """Equal shapes and types, values within the type's tolerance of the largest one."""
    for got, expected in zip(_tensors(ours), _tensors(stock), strict=True):
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        scale = expected[expected.isfinite()].abs().max().item() if expected.isfinite().any() else 1.0
        atol = TOLERANCE[expected.dtype] * max(scale, 1.0)
        torch.testing.assert_close(got, expected, rtol=0, atol=atol, equal_nan=True)


def _tensors(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)


@DTYPES
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("normalized", [(6,), (5, 6)])
def test_layer_norm(dtype: torch.dtype, affine: bool, normalized: tuple[int, ...]) -> None:
    x = 3.0 + sample(4, 5, 6, dtype=dtype)
    weight, bias = (sample(*normalized, dtype=dtype, seed=s) if affine else None for s in (1, 2))
    ours = normalisations.native_layer_norm(x, normalized, weight, bias, 1e-5)
    assert_same(ours, torch.native_layer_norm(x, normalized, weight, bias, 1e-5))


def test_layer_norm_keeps_f32_statistics_of_f32_weights() -> None:
    x, weight = sample(4, 6, dtype=torch.float16), sample(6)
    ours = normalisations.native_layer_norm(x, (6,), weight, weight, 1e-5)
    assert_same(ours, torch.native_layer_norm(x, (6,), weight, weight, 1e-5))


def test_layer_norm_of_large_values_keeps_its_digits() -> None:
    """The variance is summed from centred values: with E[x^2] - E[x]^2 nothing would be left here."""
    x = 1e4 + sample(2, 512)
    exact = F.layer_norm(x.double(), (512,))
    assert (normalisations.native_layer_norm(x, (512,), None, None, 1e-5)[0] - exact).abs().max() < 2e-3


@DTYPES
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(dtype: torch.dtype, affine: bool) -> None:
    x = sample(2, 3, 4, 5, dtype=dtype)
    weight, bias = (sample(3, dtype=dtype, seed=s) if affine else None for s in (1, 2))
    mean, variance = sample(3, dtype=dtype, seed=3), sample(3, dtype=dtype, seed=4).abs()
    arguments = (x, weight, bias, mean, variance, 0.1, 1e-5)
    ours = normalisations.native_batch_norm_no_training(*arguments)
    assert_same(ours, torch.ops.aten._native_batch_norm_legit_no_training(*arguments))


@DTYPES
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("groups", [1, 3, 6])
def test_group_norm(dtype: torch.dtype, affine: bool, groups: int) -> None:
    x = 1.0 + sample(2, 6, 4, 3, dtype=dtype)
    weight, bias = (sample(6, dtype=dtype, seed=s) if affine else None for s in (1, 2))
    arguments = (x, weight, bias, 2, 6, 12, groups, 1e-5)
    assert_same(normalisations.native_group_norm(*arguments), torch.native_group_norm(*arguments))


@DTYPES
@pytest.mark.parametrize("dim", [None, [0], [1, 2], [-1]])
@pytest.mark.parametrize("correction", [None, 0, 1, 2.5])
@pytest.mark.parametrize("keepdim", [True, False])
def test_variances(dtype: torch.dtype, dim: list[int] | None, correction: float | None, keepdim: bool) -> None:
    x = 2.0 + sample(4, 5, 6, dtype=dtype)
    options: dict[str, Any] = {"correction": correction, "keepdim": keepdim}
    assert_same(normalisations.var_correction(x, dim, **options), torch.var(x, dim, **options))
    assert_same(normalisations.std_correction(x, dim, **options), torch.std(x, dim, **options))
    assert_same(normalisations.var_mean_correction(x, dim, **options), torch.var_mean(x, dim, **options))


@pytest.mark.parametrize("correction", [1, 2])
def test_variance_of_one_element_has_no_value(correction: int) -> None:
    """PyTorch gives NaN as well, with a warning."""
    assert normalisations.var_correction(torch.ones(1), correction=correction).isnan()


@DTYPES
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dtype: torch.dtype, dim: int) -> None:
    x = 10.0 * sample(3, 4, 5, dtype=dtype)
    assert_same(softmax(x, dim, False), torch.softmax(x, dim))
    assert_same(log_softmax(x, dim, False), torch.log_softmax(x, dim))
    assert_same(safe_softmax(x, dim), torch.ops.aten._safe_softmax(x, dim))


def test_softmax_of_large_values_does_not_overflow() -> None:
    x = torch.tensor([[1e30, 1e30, -1e30]])
    assert softmax(x, -1, False).tolist() == [[0.5, 0.5, 0.0]]
    assert torch.equal(log_softmax(x, -1, False), torch.log_softmax(x, -1))


@pytest.mark.parametrize(
    "row",
    [[-math.inf] * 3, [math.nan, 0.0, 1.0], [math.inf, 0.0, 1.0], [-math.inf, 0.0, 1.0]],
    ids=["all minus infinity", "nan", "infinity", "one minus infinity"],
)
def test_softmax_of_special_rows(row: list[float]) -> None:
    x = torch.tensor([row, [1.0, 2.0, 3.0]])
    assert_same(softmax(x, 1, False), torch.softmax(x, 1))
    assert_same(log_softmax(x, 1, False), torch.log_softmax(x, 1))
    assert_same(safe_softmax(x, 1), torch.ops.aten._safe_softmax(x, 1))


def test_safe_softmax_gives_zeros_for_a_masked_row() -> None:
    assert safe_softmax(torch.full((1, 4), -math.inf), -1).tolist() == [[0.0] * 4]


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), ()])
def test_softmax_without_elements_or_dimensions(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    dim = -1 if shape else 0
    assert_same(softmax(x, dim, False), torch.softmax(x, dim))
    assert_same(log_softmax(x, dim, False), torch.log_softmax(x, dim))


@DTYPES
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(dtype: torch.dtype, approximate: str) -> None:
    x = 3.0 * sample(100, dtype=dtype)
    assert_same(gelu(x, approximate), F.gelu(x, approximate=approximate))


def _mask(kind: str, dtype: torch.dtype) -> Tensor | None:
    allowed = sample(7, 9, seed=5) > -0.5
    allowed[2] = False
    masks: dict[str, Callable[[], Tensor]] = {
        "bool": lambda: allowed,
        "float": lambda: torch.zeros(7, 9, dtype=dtype).masked_fill(~allowed, -math.inf),
        "broadcast": lambda: allowed.expand(2, 1, 7, 9),
    }
    return masks[kind]() if kind in masks else None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("kind", ["none", "causal", "bool", "float", "broadcast"])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_attention(dtype: torch.dtype, kind: str, scale: float | None) -> None:
    query, key, value = (sample(2, 4, n, 8, dtype=dtype, seed=n) for n in (7, 9, 9))
    value = value.flip(0)
    options: dict[str, Any] = {"attn_mask": _mask(kind, dtype), "is_causal": kind == "causal", "scale": scale}
    assert_same(attention(query, key, value, **options), F.scaled_dot_product_attention(query, key, value, **options))


@pytest.mark.parametrize("cache_heads", [1, 2, 6])
def test_grouped_query_attention(cache_heads: int) -> None:
    query = sample(2, 6, 5, 8)
    key, value = (sample(2, cache_heads, 7, 8, seed=s) for s in (1, 2))
    expected = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    assert_same(attention(query, key, value, enable_gqa=True), expected)


def test_attention_leaves_dropout_to_pytorch() -> None:
    x = sample(1, 2, 3, 4)
    assert attention(x, x, x, dropout_p=0.5) is NotImplemented


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_transformer_encoder_layer(norm_first: bool, activation: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(
            16, 4, 32, activation=activation, batch_first=True, norm_first=norm_first
        ).eval()
    attend = layer.self_attn
    x = sample(2, 5, 16)
    weights = [
        attend.in_proj_weight, attend.in_proj_bias, attend.out_proj.weight, attend.out_proj.bias,
        activation == "gelu", norm_first, 1e-5, layer.norm1.weight, layer.norm1.bias, layer.norm2.weight,
        layer.norm2.bias, layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias,
    ]  # fmt: skip
    with torch.no_grad():
        assert_same(transformer_encoder_layer(x, 16, 4, *weights), layer(x))
    assert transformer_encoder_layer(x, 16, 4, *weights, mask=torch.zeros(5, 5)) is NotImplemented


def test_the_table_takes_our_forms_and_keeps_the_rest() -> None:
    table = decomposition_table()
    x = sample(5)
    assert torch.equal(table[torch.ops.aten.gelu.default](x, approximate="tanh"), gelu(x, "tanh"))
    assert torch.ops.aten.mm.default not in table
    assert torch.ops.aten.addmm.default in table


def test_where_our_form_declines_the_stock_form_is_used() -> None:
    pool = decomposition_table()[torch.ops.aten._adaptive_avg_pool2d.default]
    for dtype in (torch.float32, torch.float16):
        x = sample(1, 2, 7, 7, dtype=dtype)
        assert_same(pool(x, [4, 4]), F.adaptive_avg_pool2d(x, (4, 4)))
