"""Decompositions of operators that Torch-MLIR does not lower, or lowers to something else than PyTorch computes.

NotImplemented means that the operator stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def isfinite(x: Tensor) -> Tensor:
    """Torch-MLIR compares with infinity alone, which calls NaN finite."""
    if not x.dtype.is_floating_point:
        return torch.ones_like(x, dtype=torch.bool)
    return (x.abs() < math.inf).logical_and(x.isnan().logical_not())


def reciprocal(x: Tensor) -> Tensor:
    """Torch-MLIR asserts that no element is zero."""
    dtype = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
    return torch.full((), 1.0, dtype=dtype, device=x.device) / x


def neg(x: Tensor) -> Any:
    """Integers without the way through f32, which loses digits from 2**24 on."""
    return NotImplemented if x.dtype.is_floating_point else torch.rsub(x, 0)


def pow_tensor_scalar(x: Tensor, exponent: float) -> Any:
    """Integer powers by squaring; Torch-MLIR has powers of floats only."""
    if x.dtype.is_floating_point or not isinstance(exponent, int) or exponent < 0:
        return NotImplemented
    factor = x.to(torch.result_type(x, exponent))
    result = torch.ones_like(factor)
    while exponent:
        result = result * factor if exponent % 2 else result
        factor, exponent = factor * factor, exponent // 2
    return result


def maximum(x: Tensor, y: Tensor) -> Any:
    """NaN where either is; Torch-MLIR's comparison drops the NaN of x."""
    if not torch.result_type(x, y).is_floating_point:
        return NotImplemented
    return torch.where((y > x).logical_or(y.isnan()), y, x)


def minimum(x: Tensor, y: Tensor) -> Any:
    if not torch.result_type(x, y).is_floating_point:
        return NotImplemented
    return torch.where((y < x).logical_or(y.isnan()), y, x)


def clamp(x: Tensor, low: float | None = None, high: float | None = None) -> Any:
    """Comparisons that keep NaN, in the order of the operator: the upper bound wins where the bounds cross."""
    if isinstance(low, float) or isinstance(high, float):
        x = x.to(torch.result_type(x, 1.0))
    if not x.dtype.is_floating_point:
        return NotImplemented
    if low is not None:
        x = torch.where(x < low, low, x)
    return x if high is None else torch.where(x > high, high, x)


def clamp_tensor(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    if low is not None:
        x = torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


def clamp_min(x: Tensor, low: float) -> Any:
    return clamp(x, low, None)


def clamp_max(x: Tensor, high: float) -> Any:
    return clamp(x, None, high)


def hardtanh(x: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
    if not x.dtype.is_floating_point:
        low, high = int(low), int(high)
    return torch.clamp(x, low, high)


def div_tensor_mode(x: Tensor, y: Tensor, *, rounding_mode: str | None) -> Any:
    """Floor division of integers without the way through f64, which loses digits from 2**53 on."""
    if rounding_mode != "floor" or torch.result_type(x, y).is_floating_point:
        return NotImplemented
    rest = torch.fmod(x, y)
    rounded_up = (rest != 0).logical_and((rest < 0) != (y < 0))
    return torch.div(x, y, rounding_mode="trunc") - rounded_up.to(rest.dtype)


def div_scalar_mode(x: Tensor, y: float, *, rounding_mode: str | None) -> Any:
    dtype = torch.result_type(x, y)
    return torch.div(x, torch.full((), y, dtype=dtype, device=x.device), rounding_mode=rounding_mode)


def fmod_scalar(x: Tensor, other: float) -> Tensor:
    dtype = torch.result_type(x, other)
    return torch.fmod(x.to(dtype), torch.full((), other, dtype=dtype, device=x.device))


def constant_pad_nd(x: Tensor, pad: Sequence[int], value: float = 0.0) -> Any:
    """Negative padding as a slice."""
    if all(width >= 0 for width in pad):
        return NotImplemented
    for axis, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - axis
        start = max(0, -before)
        x = x.narrow(dim, start, x.shape[dim] - start - max(0, -after))
    return torch.constant_pad_nd(x, [max(0, width) for width in pad], value)


def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    """A gather from the elements of a contiguous tensor; other memory than its own cannot be reached."""
    start: Any = 0 if storage_offset is None else storage_offset - x.storage_offset()
    last = start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if not x.is_contiguous() or start < 0 or last >= x.numel():
        return NotImplemented
    index = torch.full((), start, dtype=torch.int64, device=x.device)
    for n, step in zip(size, stride, strict=True):
        index = index.unsqueeze(-1) + step * torch.arange(n, device=x.device)
    return x.reshape(-1)[index]


def index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Any:
    """One value under a mask as a selection: the number of indices that a mask stands for is data."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or mask.dtype != torch.bool or values.numel() != 1 or accumulate:
        return NotImplemented
    return torch.where(mask.reshape(*mask.shape, *[1] * (x.dim() - mask.dim())), values.reshape(()), x)


def sort_stable(x: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The loops that sorting lowers to exchange neighbours only, so they keep the order of equal elements."""
    return torch.sort(x, dim, descending)


def addmv(x: Tensor, matrix: Tensor, vector: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = torch.mv(matrix, vector)
    # With beta = 0 the operator does not look at x, not even for NaN.
    return alpha * product if beta == 0 else beta * x + alpha * product


def dist(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    distance: Tensor = torch.linalg.vector_norm(x - y, p)
    return distance


GAPS: Mapping[Any, Callable[..., Any]] = {
    aten.addmv.default: addmv,
    aten.as_strided.default: as_strided,
    aten.clamp.default: clamp,
    aten.clamp.Tensor: clamp_tensor,
    aten.clamp_max.default: clamp_max,
    aten.clamp_max.Tensor: torch.minimum,
    aten.clamp_min.default: clamp_min,
    aten.clamp_min.Tensor: torch.maximum,
    aten.constant_pad_nd.default: constant_pad_nd,
    aten.dist.default: dist,
    aten.div.Scalar_mode: div_scalar_mode,
    aten.div.Tensor_mode: div_tensor_mode,
    aten.fmod.Scalar: fmod_scalar,
    aten.hardtanh.default: hardtanh,
    aten.index_put.default: index_put,
    aten.isfinite.default: isfinite,
    aten.maximum.default: maximum,
    aten.minimum.default: minimum,
    aten.neg.default: neg,
    aten.pow.Tensor_Scalar: pow_tensor_scalar,
    aten.reciprocal.default: reciprocal,
    aten.sort.stable: sort_stable,
}
"""Overload -> decomposition, for decomposition_table()."""
