"""Softmax and attention in plain operators. Torch-MLIR's softmax tracks the position of the maximum as well."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from torch_pim.compiler_hook.frontend.normalisations import working


def _top(x: Tensor, dim: int) -> Tensor:
    """Maximum along a dimension, which is kept; zeros for rows without elements, which have no maximum."""
    if x.dim() > 0 and statically_known_true(x.shape[dim] == 0):
        return x.sum(dim, keepdim=True)
    return x.amax(dim, keepdim=True)


def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    work = working(x)
    exponentials = torch.exp(work - _top(work, dim))
    out = exponentials / exponentials.sum(dim, keepdim=True)
    return out if half_to_float else out.to(x.dtype)


def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Softmax in which a row of minus infinities gives zeros."""
    work = working(x) if dtype is None else x.to(dtype)
    top = _top(work, dim)
    exponentials = torch.exp(work - torch.where(top == -math.inf, 0.0, top))
    total = exponentials.sum(dim, keepdim=True)
    out = exponentials / torch.where(total == 0.0, 1.0, total)
    return out.to(x.dtype if dtype is None else dtype)


def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    work = working(x)
    shifted = work - _top(work, dim)
    out = shifted - shifted.exp().sum(dim, keepdim=True).log()
    return out if half_to_float else out.to(x.dtype)


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
) -> Any:
    """Scaled dot-product attention with the scale on the query, so that keys are read where they are.

    The stock form scales query and key by sqrt(scale) each, which writes a second key cache. With dropout the stock
    form is used.
    """
    if dropout_p > 0.0:
        return NotImplemented
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
