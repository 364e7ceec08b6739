"""Embedding bags, of which Torch-MLIR lowers the sum alone: means, training and the gradient in terms of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

_SUM, _MEAN = 0, 1
"""Modes of the operator; the third one, the maximum, stays in eager."""
_LOWERED = (torch.float32, torch.float16)
"""For other types PyTorch gives the results that only training needs another shape than Torch-MLIR does."""


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Returns (result, bag of each index, size of each bag, unused), as the operator does in training."""
    if mode not in (_SUM, _MEAN) or include_last_offset or padding_idx >= 0 or per_sample_weights is not None:
        return NotImplemented
    end = torch.full((1,), indices.shape[0], dtype=offsets.dtype, device=offsets.device)
    sizes = torch.cat([offsets[1:], end]) - offsets
    # A bag may begin behind the last index: it is empty then.
    begins = torch.zeros(indices.shape[0] + 1, dtype=offsets.dtype, device=offsets.device)
    bags = begins.index_add(0, offsets, torch.ones_like(offsets)).cumsum(0)[:-1] - 1
    if weight.dtype in _LOWERED:
        result = aten._embedding_bag_forward_only.default(weight, indices, offsets)[0]
    else:
        rows = weight.index_select(0, indices)
        work = rows.to(torch.promote_types(rows.dtype, torch.float32))
        result = work.new_zeros((offsets.shape[0], work.shape[1])).index_add(0, bags, work).to(rows.dtype)
    if mode == _MEAN:
        # An empty bag sums to zero.
        result = result / sizes.clamp(min=1).unsqueeze(-1).to(result.dtype)
    return result, bags, sizes, sizes.clone()


def embedding_bag_forward_only(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = _SUM, *rest: Any
) -> Any:
    """A sum stays the operator that it is."""
    if mode == _SUM and weight.dtype in _LOWERED:
        return NotImplemented
    return embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, *rest)


def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bags: Tensor,
    sizes: Tensor,
    maximum_indices: Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Any:
    """Gradient of the table, shape (rows, width)."""
    if mode not in (_SUM, _MEAN) or scale_grad_by_freq or sparse or padding_idx >= 0 or per_sample_weights is not None:
        return NotImplemented
    if mode == _MEAN:
        grad = grad / sizes.clamp(min=1).unsqueeze(-1).to(grad.dtype)
    return grad.new_zeros((rows, grad.shape[1])).index_add(0, indices, grad.index_select(0, bags))


EMBEDDING_BAGS: Mapping[Any, Callable[..., Any]] = {
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_forward_only.default: embedding_bag_forward_only,
    aten._embedding_bag_backward.default: embedding_bag_backward,
}
"""Overload -> decomposition, for decomposition_table()."""
