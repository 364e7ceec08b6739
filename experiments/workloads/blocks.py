"""Single blocks: a multi-layer perceptron and a multi-head attention block."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from torch_pim.experiments.workloads.options import TORCH_DTYPES, DType, Phase, about
from torch_pim.experiments.workloads.workload import Built, Workload


@dataclass(frozen=True, slots=True)
class MLPOptions:
    """A perceptron of equal layers with ReLU between them."""

    batch: int = field(default=1, metadata=about("rows of the input"))
    hidden: int = field(default=4096, metadata=about("width of every layer"))
    layers: int = field(default=3, metadata=about("linear layers"))
    dtype: DType = field(default="f32", metadata=about("type of weights and activations"))


def _mlp(options: MLPOptions) -> Built:
    dtype = TORCH_DTYPES[options.dtype]
    layers: list[nn.Module] = []
    for index in range(options.layers):
        if index:
            layers.append(nn.ReLU())
        layers.append(nn.Linear(options.hidden, options.hidden, dtype=dtype))
    return nn.Sequential(*layers), (torch.randn(options.batch, options.hidden, dtype=dtype),)


@dataclass(frozen=True, slots=True)
class AttentionOptions:
    """One attention block with its four projections (Vaswani et al., 2017)."""

    phase: Phase = field(
        default="prefill",
        metadata=about("prefill attends within the prompt, decode attends one token to a filled cache"),
    )
    sequence: int = field(default=512, metadata=about("tokens of a prefill"))
    context: int = field(default=2048, metadata=about("tokens already in the key-value cache of a decode step"))
    heads: int = field(default=32, metadata=about("attention heads"))
    head_size: int = field(default=128, metadata=about("width of one head"))
    batch: int = field(default=1, metadata=about("sequences per pass"))
    dtype: DType = field(default="f32", metadata=about("type of weights, activations and cache"))


class SelfAttention(nn.Module):
    """Projections, scaled dot-product attention and output projection on [batch, tokens, hidden]."""

    def __init__(self, heads: int, head_size: int, dtype: torch.dtype, causal: bool = False) -> None:
        super().__init__()
        hidden = heads * head_size
        self.heads = heads
        self.causal = causal
        self.query = nn.Linear(hidden, hidden, bias=False, dtype=dtype)
        self.key = nn.Linear(hidden, hidden, bias=False, dtype=dtype)
        self.value = nn.Linear(hidden, hidden, bias=False, dtype=dtype)
        self.output = nn.Linear(hidden, hidden, bias=False, dtype=dtype)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, tokens, hidden] -> [batch, heads, tokens, head size]."""
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool) -> torch.Tensor:
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        result: torch.Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return result

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        return self.attend(query, key, value, self.causal)


class CachedAttention(SelfAttention):
    """One new token [batch, 1, hidden] attends to a cache [batch, heads, context, head size] and to itself."""

    def forward(  # type: ignore[override]
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        mixed = self.attend(query, torch.cat([keys, key], 2), torch.cat([values, value], 2), causal=False)
        return mixed, key, value


def _attention(options: AttentionOptions) -> Built:
    dtype = TORCH_DTYPES[options.dtype]
    hidden = options.heads * options.head_size
    if options.phase == "prefill":
        block = SelfAttention(options.heads, options.head_size, dtype, causal=True)
        return block, (torch.randn(options.batch, options.sequence, hidden, dtype=dtype),)
    size = (options.batch, options.heads, options.context, options.head_size)
    cached = CachedAttention(options.heads, options.head_size, dtype)
    token = torch.randn(options.batch, 1, hidden, dtype=dtype)
    return cached, (token, torch.randn(size, dtype=dtype), torch.randn(size, dtype=dtype))


BLOCKS = (
    Workload("mlp", "three linear layers of width 4096 with ReLU", MLPOptions(), _mlp),
    Workload("attention", "attention block of 32 heads of 128, with projections", AttentionOptions(), _attention),
)
