"""Single tensor operators on a [rows, columns] operand, the smallest workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_pim.experiments.workloads.options import TORCH_DTYPES, DType, about
from torch_pim.experiments.workloads.workload import Built, Workload


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """Size of the main operand."""

    rows: int = field(default=4096, metadata=about("rows"))
    columns: int = field(default=4096, metadata=about("columns"))
    dtype: DType = field(default="f32", metadata=about("element type"))


class Apply(nn.Module):
    """A module that applies a function of tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.function(*arguments)


Shapes = Callable[[int, int], tuple[tuple[int, ...], ...]]


def _same(rows: int, columns: int) -> tuple[tuple[int, ...], ...]:
    return ((rows, columns),)


def _two(rows: int, columns: int) -> tuple[tuple[int, ...], ...]:
    return ((rows, columns), (rows, columns))


def _operator(name: str, description: str, function: Callable[..., Any], shapes: Shapes) -> Workload:
    def build(options: OperatorOptions) -> Built:
        dtype = TORCH_DTYPES[options.dtype]
        return Apply(function), tuple(torch.randn(s, dtype=dtype) for s in shapes(options.rows, options.columns))

    return Workload(name, description, OperatorOptions(), build)


def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (x.shape[-1],), weight, bias)


def _rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


OPERATORS = (
    _operator("gemv", "matrix times vector", torch.mv, lambda r, c: ((r, c), (c,))),
    _operator("gemm", "matrix product [rows, columns] x [columns, rows]", torch.mm, lambda r, c: ((r, c), (c, r))),
    _operator("add", "sum of two matrices", torch.add, _two),
    _operator("relu", "rectified linear unit", torch.relu, _same),
    _operator("gelu", "Gaussian error linear unit", functional.gelu, _same),
    _operator("softmax", "softmax of each row", lambda x: torch.softmax(x, -1), _same),
    _operator("layer-norm", "layer norm of each row", _layer_norm, lambda r, c: ((r, c), (c,), (c,))),
    _operator("rms-norm", "root-mean-square norm of each row", _rms_norm, lambda r, c: ((r, c), (c,))),
    _operator("row-sum", "sum of each row", lambda x: x.sum(-1), _same),
    _operator("column-sum", "sum of each column", lambda x: x.sum(0), _same),
    _operator("transpose", "transposed copy", lambda x: x.t().contiguous(), _same),
    _operator("dot", "dot product of two vectors", torch.dot, lambda r, c: ((r * c,), (r * c,))),
)
