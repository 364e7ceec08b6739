"""Transformer encoders in plain PyTorch: BERT (Devlin et al., 2019) and ViT (Dosovitskiy et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from torch_pim.experiments.workloads.blocks import SelfAttention
from torch_pim.experiments.workloads.options import TORCH_DTYPES, DType, about
from torch_pim.experiments.workloads.workload import Built, Workload


class EncoderLayer(nn.Module):
    """Attention and feed-forward with residuals; layer norm before (ViT) or after (BERT) each of the two."""

    def __init__(self, heads: int, head_size: int, dtype: torch.dtype, norm_first: bool) -> None:
        super().__init__()
        hidden = heads * head_size
        self.norm_first = norm_first
        self.attention = SelfAttention(heads, head_size, dtype)
        self.norm1 = nn.LayerNorm(hidden, dtype=dtype)
        self.norm2 = nn.LayerNorm(hidden, dtype=dtype)
        self.feed_forward = nn.Sequential(
            nn.Linear(hidden, 4 * hidden, dtype=dtype), nn.GELU(), nn.Linear(4 * hidden, hidden, dtype=dtype)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.norm_first:
            x = x + self.attention(self.norm1(x))
            return torch.add(x, self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.attention(x))
        result: torch.Tensor = self.norm2(x + self.feed_forward(x))
        return result


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """Shape of a BERT-like encoder."""

    layers: int = field(default=1, metadata=about("encoder layers"))
    sequence: int = field(default=128, metadata=about("tokens"))
    heads: int = field(default=12, metadata=about("attention heads of size 64"))
    batch: int = field(default=1, metadata=about("sequences per pass"))
    dtype: DType = field(default="f32", metadata=about("type of weights and activations"))


class BertEncoder(nn.Module):
    """Token and position embeddings, encoder layers: ids [batch, tokens] -> [batch, tokens, hidden]."""

    def __init__(self, options: EncoderOptions, vocabulary: int) -> None:
        super().__init__()
        dtype = TORCH_DTYPES[options.dtype]
        hidden = options.heads * 64
        self.tokens = nn.Embedding(vocabulary, hidden, dtype=dtype)
        self.positions = nn.Embedding(options.sequence, hidden, dtype=dtype)
        self.norm = nn.LayerNorm(hidden, dtype=dtype)
        self.layers = nn.Sequential(*(EncoderLayer(options.heads, 64, dtype, False) for _ in range(options.layers)))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layers(self.norm(self.tokens(ids) + self.positions.weight))
        return result


class VisionTransformer(nn.Module):
    """Patch embedding by convolution, class token, encoder layers, classifier: [batch, 3, 224, 224] -> logits."""

    def __init__(self, layers: int, heads: int, dtype: torch.dtype, image: int = 224, patch: int = 16) -> None:
        super().__init__()
        hidden = heads * 64
        self.patches = nn.Conv2d(3, hidden, patch, stride=patch, dtype=dtype)
        self.class_token = nn.Parameter(torch.randn(1, 1, hidden, dtype=dtype))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, hidden, dtype=dtype))
        self.layers = nn.Sequential(*(EncoderLayer(heads, 64, dtype, True) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden, dtype=dtype)
        self.head = nn.Linear(hidden, 1000, dtype=dtype)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        logits: torch.Tensor = self.head(self.norm(self.layers(x))[:, 0])
        return logits


@dataclass(frozen=True, slots=True)
class VisionTransformerOptions:
    """ViT-Tiny has 12 layers of 3 heads (Touvron et al., 2021)."""

    layers: int = field(default=12, metadata=about("encoder layers"))
    heads: int = field(default=3, metadata=about("attention heads of size 64"))
    batch: int = field(default=1, metadata=about("images per pass"))
    dtype: DType = field(default="f32", metadata=about("type of weights and activations"))


def _bert_layer(options: EncoderOptions) -> Built:
    dtype = TORCH_DTYPES[options.dtype]
    layers = nn.Sequential(*(EncoderLayer(options.heads, 64, dtype, False) for _ in range(options.layers)))
    return layers, (torch.randn(options.batch, options.sequence, options.heads * 64, dtype=dtype),)


def _bert_small(options: EncoderOptions) -> Built:
    vocabulary = 30522
    ids = torch.randint(0, vocabulary, (options.batch, options.sequence))
    return BertEncoder(options, vocabulary), (ids,)


def _vit(options: VisionTransformerOptions) -> Built:
    dtype = TORCH_DTYPES[options.dtype]
    model = VisionTransformer(options.layers, options.heads, dtype)
    return model, (torch.randn(options.batch, 3, 224, 224, dtype=dtype),)


ENCODERS = (
    Workload("bert-layer", "one encoder layer of BERT-Base (hidden size 768)", EncoderOptions(), _bert_layer),
    Workload("bert-small", "BERT with 4 layers of hidden size 512", EncoderOptions(layers=4, heads=8), _bert_small),
    Workload("vit-tiny", "Vision Transformer, 12 layers of hidden size 192", VisionTransformerOptions(), _vit),
)
