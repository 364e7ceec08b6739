"""Which ATen operators are taken apart before the import, and our own decompositions.

Torch-MLIR computes variances in f64, uses 0.797724 for sqrt(2/pi) = 0.7978846 in tanh-GELU, and tracks arg-max
indices inside softmax. The decompositions here stay in the input's precision (f32 for half types).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from torch_pim.compiler_hook.frontend.operator_gaps import GAPS

aten = torch.ops.aten
Decomposition = Callable[..., Any]


def _working(x: Tensor) -> Tensor:
    """f32 for half-precision tensors, else the tensor itself."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _mean_and_variance(x: Tensor, dims: Sequence[int], correction: float, keepdim: bool) -> tuple[Tensor, Tensor]:
    count = math.prod(x.shape[d] for d in dims)
    mean = x.sum(dims, keepdim=True) / count
    centred = x - mean
    variance = (centred * centred).sum(dims, keepdim=keepdim) / max(0.0, count - correction)
    return (mean if keepdim else mean.squeeze(tuple(dims))), variance


def _all_dims(x: Tensor, dim: Sequence[int] | None) -> list[int]:
    return list(range(x.dim())) if not dim else [d % x.dim() for d in dim]


def var_correction(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    """Two-pass variance in the input's precision."""
    work = _working(x)
    _, variance = _mean_and_variance(work, _all_dims(x, dim), 1.0 if correction is None else correction, keepdim)
    return variance.to(x.dtype)


def std_correction(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return var_correction(_working(x), dim, correction=correction, keepdim=keepdim).sqrt().to(x.dtype)


def var_mean_correction(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    work = _working(x)
    mean, variance = _mean_and_variance(work, _all_dims(x, dim), 1.0 if correction is None else correction, keepdim)
    return variance.to(x.dtype), mean.to(x.dtype)


def native_layer_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (output, mean, reciprocal standard deviation), as the operator does."""
    work = _working(x)
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    mean, variance = _mean_and_variance(work, dims, 0.0, True)
    rstd = torch.rsqrt(variance + eps)
    out = (work - mean) * rstd
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out.to(x.dtype), mean, rstd


def _batch_norm_eval(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> Tensor:
    shape = [1, x.shape[1]] + [1] * (x.dim() - 2)
    scale = torch.rsqrt(_working(variance) + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    return (_working(x) * scale.view(shape) + shift.view(shape)).to(x.dtype)


def native_batch_norm_no_training(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    empty = x.new_zeros((0,))
    return _batch_norm_eval(x, weight, bias, mean, variance, eps), empty, empty


def native_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hxw: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    work = _working(x).reshape(n, group, (c // group) * hxw)
    mean, variance = _mean_and_variance(work, [2], 0.0, True)
    rstd = torch.rsqrt(variance + eps)
    out = ((work - mean) * rstd).reshape(x.shape)
    shape = [1, c] + [1] * (x.dim() - 2)
    if weight is not None:
        out = out * weight.view(shape)
    if bias is not None:
        out = out + bias.view(shape)
    return out.to(x.dtype), mean.reshape(n, group), rstd.reshape(n, group)


def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    work = _working(x)
    exponentials = torch.exp(work - work.amax(dim, keepdim=True))
    out = exponentials / exponentials.sum(dim, keepdim=True)
    return out if half_to_float else out.to(x.dtype)


def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Softmax in which a row of minus infinities gives zeros."""
    work = _working(x) if dtype is None else x.to(dtype)
    top = work.amax(dim, keepdim=True)
    exponentials = torch.exp(work - torch.where(top == -math.inf, 0.0, top))
    total = exponentials.sum(dim, keepdim=True)
    out = exponentials / torch.where(total == 0.0, 1.0, total)
    return out.to(x.dtype if dtype is None else dtype)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Scaled dot-product attention with the scale on the query, so that keys are read where they are.

    The stock form scales query and key by sqrt(scale) each, which writes a second key cache. Without dropout only.
    """
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = torch.matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(allowed.logical_not(), -math.inf)
    elif attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
        else:
            scores = scores + attn_mask
    return torch.matmul(safe_softmax(scores, -1), value)


def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    work = _working(x)
    shifted = work - work.amax(dim, keepdim=True)
    out = shifted - shifted.exp().sum(dim, keepdim=True).log()
    return out if half_to_float else out.to(x.dtype)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Hendrycks and Gimpel, 2016; the tanh form with sqrt(2/pi) to full precision."""
    work = _working(x)
    if approximate == "tanh":
        inner = math.sqrt(2.0 / math.pi) * (work + 0.044715 * work * work * work)
        out = 0.5 * work * (1.0 + torch.tanh(inner))
    else:
        out = 0.5 * work * (1.0 + torch.erf(work * math.sqrt(0.5)))
    return out.to(x.dtype)


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """The inference fast path of nn.TransformerEncoderLayer in plain operators, for src of shape (batch, length, dim)."""
    if mask is not None:
        raise RuntimeError("transformer fast path with a mask has no decomposition")

    def attend(x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        qkv = torch.nn.functional.linear(x, qkv_weight, qkv_bias)
        heads = qkv.view(batch, length, 3, num_heads, embed_dim // num_heads).permute(2, 0, 3, 1, 4)
        mixed = attention(heads[0], heads[1], heads[2]).transpose(1, 2).reshape(batch, length, embed_dim)
        return torch.nn.functional.linear(mixed, proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        hidden = torch.nn.functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = gelu(hidden) if use_gelu else torch.relu(hidden)
        return torch.nn.functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def normalise(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return native_layer_norm(x, (embed_dim,), weight, bias, eps)[0]

    if norm_first:
        src = src + attend(normalise(src, norm_weight_1, norm_bias_1))
        return src + feed_forward(normalise(src, norm_weight_2, norm_bias_2))
    src = normalise(src + attend(src), norm_weight_1, norm_bias_1)
    return normalise(src + feed_forward(src), norm_weight_2, norm_bias_2)


_OWN: dict[Any, Decomposition] = {
    aten.var.correction: var_correction,
    aten.std.correction: std_correction,
    aten.var_mean.correction: var_mean_correction,
    aten.native_layer_norm.default: native_layer_norm,
    aten._native_batch_norm_legit_no_training.default: native_batch_norm_no_training,
    aten.native_group_norm.default: native_group_norm,
    aten._softmax.default: softmax,
    aten._log_softmax.default: log_softmax,
    aten._safe_softmax.default: safe_softmax,
    aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
    aten.scaled_dot_product_attention.default: attention,
    aten.gelu.default: gelu,
}


@functools.cache
def decomposition_table() -> dict[Any, Decomposition]:
    """Operator overload -> decomposition, for torch.export and AOTAutograd alike. Do not modify."""
    table = dict(get_decomposition_table())
    table.update(GAPS)
    table.update(_OWN)
    return table
