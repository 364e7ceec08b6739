"""Variances and normalisations, in two passes and in the input's precision (f32 for half types).

Torch-MLIR computes variances in f64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def working(x: Tensor) -> Tensor:
    """f32 for half-precision tensors, else the tensor itself."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _mean_and_variance(x: Tensor, dims: list[int], correction: float, keepdim: bool) -> tuple[Tensor, Tensor]:
    count = math.prod(x.shape[d] for d in dims)
    mean = x.sum(dims, keepdim=True) / count
    centred = x - mean
    variance = (centred * centred).sum(dims, keepdim=keepdim) / max(0.0, count - correction)
    return (mean if keepdim else mean.squeeze(tuple(dims))), variance


def _statistics_type(x: Tensor, weight: Tensor | None) -> torch.dtype:
    return x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)


def _all_dims(x: Tensor, dim: Sequence[int] | None) -> list[int]:
    return list(range(x.dim())) if not dim else [d % x.dim() for d in dim]


def var_correction(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    """Two-pass variance in the input's precision."""
    work = working(x)
    _, variance = _mean_and_variance(work, _all_dims(x, dim), 1.0 if correction is None else correction, keepdim)
    return variance.to(x.dtype)


def std_correction(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return var_correction(working(x), dim, correction=correction, keepdim=keepdim).sqrt().to(x.dtype)


def var_mean_correction(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    work = working(x)
    mean, variance = _mean_and_variance(work, _all_dims(x, dim), 1.0 if correction is None else correction, keepdim)
    return variance.to(x.dtype), mean.to(x.dtype)


def native_layer_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (output, mean, reciprocal standard deviation), as the operator does."""
    work = working(x)
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    mean, variance = _mean_and_variance(work, dims, 0.0, True)
    rstd = torch.rsqrt(variance + eps)
    out = (work - mean) * rstd
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    kept = _statistics_type(x, weight)
    return out.to(x.dtype), mean.to(kept), rstd.to(kept)


def _batch_norm_eval(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> Tensor:
    shape = [1, x.shape[1]] + [1] * (x.dim() - 2)
    scale = torch.rsqrt(working(variance) + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    return (working(x) * scale.view(shape) + shift.view(shape)).to(x.dtype)


def native_batch_norm_no_training(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    empty = x.new_zeros((0,), dtype=_statistics_type(x, weight))
    return _batch_norm_eval(x, weight, bias, mean, variance, eps), empty, empty


def native_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hxw: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    work = working(x).reshape(n, group, (c // group) * hxw)
    mean, variance = _mean_and_variance(work, [2], 0.0, True)
    rstd = torch.rsqrt(variance + eps)
    out = ((work - mean) * rstd).reshape(x.shape)
    shape = [1, c] + [1] * (x.dim() - 2)
    if weight is not None:
        out = out * weight.view(shape)
    if bias is not None:
        out = out + bias.view(shape)
    kept = _statistics_type(x, weight)
    return out.to(x.dtype), mean.reshape(n, group).to(kept), rstd.reshape(n, group).to(kept)
