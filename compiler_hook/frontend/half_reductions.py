"""Reductions of half-precision tensors in f32, as PyTorch's CPU kernels do them.

Torch-MLIR accumulates in the element type: a bf16 sum stops growing at 256 times its addend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)


def _accumulating_in_f32(operator: Any) -> Callable[..., Any]:
    def decomposition(x: Tensor, *arguments: Any, **keywords: Any) -> Any:
        if x.dtype not in _HALF or keywords.get("dtype") is not None:
            return NotImplemented
        return operator(x.float(), *arguments, **keywords).to(x.dtype)

    return decomposition


def _convolution(x: Tensor, weight: Tensor, bias: Tensor | None, *arguments: Any) -> Any:
    if x.dtype not in _HALF:
        return NotImplemented
    wide_bias = None if bias is None else bias.float()
    return aten.convolution.default(x.float(), weight.float(), wide_bias, *arguments).to(x.dtype)


HALF_REDUCTIONS: Mapping[Any, Callable[..., Any]] = {
    aten.convolution.default: _convolution,
    **{
        operator: _accumulating_in_f32(operator)
        for operator in (
            aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim,
            aten.prod.default, aten.prod.dim_int, aten.cumsum.default, aten.cumprod.default,
            aten.linalg_vector_norm.default, aten.norm.Scalar, aten.norm.ScalarOpt_dim,
            aten.avg_pool2d.default, aten._adaptive_avg_pool2d.default,
        )
    },
}  # fmt: skip
"""Operator overload -> decomposition; NotImplemented for wider types."""
