"""The models of these tests: workloads at sizes that take a second, and layers that users write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torch_pim.experiments.workloads import get_workload

Built = tuple[nn.Module, tuple[Any, ...]]


def workload(name: str, **options: int | str) -> Callable[[], Built]:
    return lambda: get_workload(name).build(options)


class NormAndSoftmax(nn.Module):
    """LayerNorm, then softmax over two axes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(33)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.norm(x)
        return x.softmax(-1), x.softmax(0)


def _norm_and_softmax() -> Built:
    return NormAndSoftmax().eval(), (torch.randn(9, 33),)


class Recommender(nn.Module):
    """Embedding bags beside a dense feature, as in recommendation models (Naumov et al., 2019)."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = nn.EmbeddingBag(50, 6, mode="sum")
        self.means = nn.EmbeddingBag(50, 6)
        self.dense = nn.Linear(13, 6)
        self.top = nn.Linear(18, 1)

    def forward(self, dense: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        parts = [torch.relu(self.dense(dense)), self.sums(first), self.means(second)]
        return torch.sigmoid(self.top(torch.cat(parts, 1)))


def _recommender() -> Built:
    ids = torch.randint(0, 50, (2, 4, 5))
    return Recommender().eval(), (torch.randn(4, 13), ids[0], ids[1])


def _lstm() -> Built:
    return nn.LSTM(10, 12, batch_first=True).eval(), (torch.randn(3, 4, 10),)


def _mlp() -> Built:
    return nn.Sequential(nn.Linear(33, 48), nn.ReLU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 7)), (
        torch.randn(5, 33),
    )


MODELS: dict[str, Callable[[], Built]] = {
    "mlp": _mlp,
    "attention": workload("attention", sequence=9, heads=2, head_size=8),
    "attention-decode": workload("attention", phase="decode", context=9, heads=2, head_size=8),
    "norm-softmax": _norm_and_softmax,
    "conv-bn-relu": workload("conv-bn-relu", channels=5, image=9),
    "embedding-bag": _recommender,
    "lstm": _lstm,
    "llama-small": workload("llama-small"),
    "llama-small-decode": workload("llama-small", phase="decode"),
    "gptj-small": workload("gptj-small"),
    "bert-small": workload("bert-small", layers=2, sequence=8, heads=2),
    "resnet-small": workload("resnet-small", image=32),
}
