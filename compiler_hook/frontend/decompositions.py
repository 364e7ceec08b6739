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


_OWN: dict[Any, Decomposition] = {
    aten.var.correction: var_correction,
    aten.std.correction: std_correction,
    aten.var_mean.correction: var_mean_correction,
    aten.native_layer_norm.default: native_layer_norm,
    aten._native_batch_norm_legit_no_training.default: native_batch_norm_no_training,
    aten.native_group_norm.default: native_group_norm,
    aten._softmax.default: softmax,
    aten._log_softmax.default: log_softmax,
    aten.gelu.default: gelu,
}


@functools.cache
def decomposition_table() -> dict[Any, Decomposition]:
    """Operator overload -> decomposition, for torch.export and AOTAutograd alike. Do not modify."""
    table = dict(get_decomposition_table())
    table.update(_OWN)
    return table
