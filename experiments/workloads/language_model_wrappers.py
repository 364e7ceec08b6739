"""Pure functions around Hugging Face causal language models: tensors in, tensors out, no cache objects."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn


def _cache_argument(model: nn.Module) -> str:
    """Name of the forward argument that takes the key-value cache; it changed within transformers 5."""
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def _empty_cache() -> Any:
    from transformers import DynamicCache

    return DynamicCache()


class Prefill(nn.Module):
    """(ids [b, s], positions [b, s], additive mask [b, 1, s, s]) -> (logits of the last token, k0, v0, k1, ...).

    Only the last position goes through the output projection, as in text generation.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._cache_argument = _cache_argument(model)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cache = _empty_cache()
        output = self.model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: cache},
        )
        return (output.logits, *(tensor for layer in cache.layers for tensor in (layer.keys, layer.values)))


class Decode(nn.Module):
    """(ids [b, 1], positions [b, 1], additive mask [b, 1, 1, c + 1], [k0, v0, k1, ...]) -> (logits, new k0, v0, ...).

    The cache tensors are [b, heads, c, head size]; the results hold only the slice of the new token.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._cache_argument = _cache_argument(model)

    def forward(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, keys_values: list[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        cache = _empty_cache()
        for layer in range(len(keys_values) // 2):
            cache.update(keys_values[2 * layer], keys_values[2 * layer + 1], layer)
        output = self.model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask,
            use_cache=True,
            **{self._cache_argument: cache},
        )
        new = (t[:, :, -1:] for layer in cache.layers for t in (layer.keys, layer.values))
        return (output.logits, *new)
