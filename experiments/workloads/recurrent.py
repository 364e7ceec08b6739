"""Recurrent and recommendation models: an unrolled LSTM (Hochreiter and Schmidhuber, 1997) and an embedding bag."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from torch_pim.experiments.workloads.options import about
from torch_pim.experiments.workloads.workload import Built, Workload


class UnrolledLSTM(nn.Module):
    """One LSTM layer over [batch, steps, width], unrolled; returns the last hidden state [batch, hidden]."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.from_input = nn.Linear(width, 4 * hidden)
        self.from_state = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = x.new_zeros(x.shape[0], self.hidden)
        cell = x.new_zeros(x.shape[0], self.hidden)
        for step in range(x.shape[1]):
            gates = self.from_input(x[:, step]) + self.from_state(state)
            entry, forget, candidate, exit_ = gates.chunk(4, -1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(entry) * torch.tanh(candidate)
            state = torch.sigmoid(exit_) * torch.tanh(cell)
        return state


@dataclass(frozen=True, slots=True)
class LSTMOptions:
    """Shape of one recurrent layer."""

    steps: int = field(default=8, metadata=about("time steps, unrolled"))
    hidden: int = field(default=1024, metadata=about("width of input and state"))
    batch: int = field(default=1, metadata=about("sequences per pass"))


@dataclass(frozen=True, slots=True)
class EmbeddingBagOptions:
    """Shape of one pooled table look-up, the memory-bound part of recommendation models (Naumov et al., 2019)."""

    rows: int = field(default=1_000_000, metadata=about("rows of the table"))
    width: int = field(default=64, metadata=about("columns of the table"))
    bags: int = field(default=1024, metadata=about("results"))
    pooled: int = field(default=32, metadata=about("rows summed per result"))


class EmbeddingBagSum(nn.Module):
    """Sums `pooled` rows per bag: (table [rows, width], indices [bags, pooled]) -> [bags, width]."""

    def forward(self, table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(indices, table).sum(1)


def _lstm(options: LSTMOptions) -> Built:
    return UnrolledLSTM(options.hidden, options.hidden), (torch.randn(options.batch, options.steps, options.hidden),)


def _embedding_bag(options: EmbeddingBagOptions) -> Built:
    table = torch.randn(options.rows, options.width)
    return EmbeddingBagSum(), (table, torch.randint(0, options.rows, (options.bags, options.pooled)))


RECURRENT = (
    Workload("lstm", "one unrolled LSTM layer of width 1024", LSTMOptions(), _lstm),
    Workload("embedding-bag", "sums of rows of a table of 1M x 64", EmbeddingBagOptions(), _embedding_bag),
)
