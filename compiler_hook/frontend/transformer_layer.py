"""The fused encoder layer of torch.nn in plain operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_pim.compiler_hook.frontend.activations import gelu
from torch_pim.compiler_hook.frontend.attention import attention
from torch_pim.compiler_hook.frontend.normalisations import native_layer_norm


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Any:
    """The inference fast path of nn.TransformerEncoderLayer, for src of shape (batch, length, dim) without a mask."""
    if mask is not None:
        return NotImplemented

    def attend(x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        qkv = torch.nn.functional.linear(x, qkv_weight, qkv_bias)
        heads = qkv.view(batch, length, 3, num_heads, embed_dim // num_heads).permute(2, 0, 3, 1, 4)
        mixed: Tensor = attention(heads[0], heads[1], heads[2]).transpose(1, 2).reshape(batch, length, embed_dim)
        return torch.nn.functional.linear(mixed, proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        hidden = torch.nn.functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = gelu(hidden) if use_gelu else torch.relu(hidden)
        return torch.nn.functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def normalise(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return native_layer_norm(x, (embed_dim,), weight, bias, eps)[0]

    if norm_first:
        src = src + attend(normalise(src, norm_weight_1, norm_bias_1))
        return src + feed_forward(normalise(src, norm_weight_2, norm_bias_2))
    src = normalise(src + attend(src), norm_weight_1, norm_bias_1)
    return normalise(src + feed_forward(src), norm_weight_2, norm_bias_2)
