"""LLaMA (Touvron et al., 2023) and GPT-J (Wang and Komatsuzaki, 2021), unmodified from Hugging Face transformers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.experiments.workloads.language_model_wrappers import Decode, Prefill
from torch_pim.experiments.workloads.options import TORCH_DTYPES, DType, Phase, about
from torch_pim.experiments.workloads.workload import Built, Workload


class OptionalDependencyError(TorchPimError, ImportError):
    """A package of an optional extra is missing."""


@dataclass(frozen=True, slots=True)
class LanguageModelOptions:
    """Shape of one forward pass."""

    phase: Phase = field(
        default="prefill",
        metadata=about("prefill reads the prompt at once, decode makes one token from a filled cache"),
    )
    sequence: int = field(default=128, metadata=about("prompt tokens of a prefill"))
    context: int = field(default=2048, metadata=about("tokens already in the key-value cache of a decode step"))
    layers: int = field(default=32, metadata=about("transformer layers"))
    dtype: DType = field(default="f32", metadata=about("type of weights, activations and cache"))
    batch: int = field(default=1, metadata=about("sequences per pass"))


@dataclass(frozen=True, slots=True)
class LlamaOptions(LanguageModelOptions):
    """LLaMA-7B has 32 layers."""


@dataclass(frozen=True, slots=True)
class GPTJOptions(LanguageModelOptions):
    """GPT-J-6B has 28 layers."""

    layers: int = field(default=28, metadata=about("transformer layers"))


@dataclass(frozen=True, slots=True)
class _Shape:
    cache_heads: int
    head_size: int
    vocabulary: int


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise OptionalDependencyError(
            "the language-model workloads need the package 'transformers': pip install 'torch-pim[models]'"
        ) from error
    return transformers


def _instantiate(model_type: Any, config: Any, dtype: torch.dtype) -> nn.Module:
    """Weights are created in `dtype`; buffers that the model keeps in f32 (rotary frequencies) stay f32."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model: nn.Module = model_type(config)
    finally:
        torch.set_default_dtype(previous)
    return model.eval()


def _wrap(model: nn.Module, shape: _Shape, options: LanguageModelOptions) -> Built:
    dtype = TORCH_DTYPES[options.dtype]
    batch = options.batch
    if options.phase == "prefill":
        length = options.sequence
        ids = torch.randint(0, shape.vocabulary, (batch, length))
        positions = torch.arange(length).repeat(batch, 1)
        # Additive causal mask: the smallest number of the type stands for minus infinity, as in transformers.
        blocked = torch.ones(length, length).triu(1).to(dtype) * torch.finfo(dtype).min
        return Prefill(model), (ids, positions, blocked.repeat(batch, 1, 1, 1))
    ids = torch.randint(0, shape.vocabulary, (batch, 1))
    positions = torch.full((batch, 1), options.context)
    mask = torch.zeros(batch, 1, 1, options.context + 1, dtype=dtype)
    size = (batch, shape.cache_heads, options.context, shape.head_size)
    cache = [torch.randn(size, dtype=dtype) for _ in range(2 * options.layers)]
    return Decode(model), (ids, positions, mask, cache)


def _llama(options: LanguageModelOptions, **size: int) -> Built:
    transformers = _transformers()
    config = transformers.LlamaConfig(num_hidden_layers=options.layers, **size)
    head = config.hidden_size // config.num_attention_heads
    model = _instantiate(transformers.LlamaForCausalLM, config, TORCH_DTYPES[options.dtype])
    return _wrap(model, _Shape(config.num_key_value_heads, head, config.vocab_size), options)


def _gptj(options: LanguageModelOptions, **size: int) -> Built:
    transformers = _transformers()
    config = transformers.GPTJConfig(n_layer=options.layers, **size)
    model = _instantiate(transformers.GPTJForCausalLM, config, TORCH_DTYPES[options.dtype])
    return _wrap(model, _Shape(config.n_head, config.n_embd // config.n_head, config.vocab_size), options)


def _llama_7b(options: LlamaOptions) -> Built:
    return _llama(options)


def _gptj_6b(options: GPTJOptions) -> Built:
    return _gptj(options)


def _llama_small(options: LlamaOptions) -> Built:
    return _llama(
        options,
        vocab_size=512,
        hidden_size=64,
        intermediate_size=176,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
    )


def _gptj_small(options: GPTJOptions) -> Built:
    return _gptj(
        options,
        vocab_size=512,
        n_embd=64,
        n_head=4,
        n_inner=256,
        rotary_dim=8,
        n_positions=4096,
        bos_token_id=0,
        eos_token_id=0,
    )


LANGUAGE_MODELS = (
    Workload("llama-7b", "LLaMA-7B, 32 layers of hidden size 4096, random weights", LlamaOptions(), _llama_7b),
    Workload("gptj-6b", "GPT-J-6B, 28 layers of hidden size 4096, random weights", GPTJOptions(), _gptj_6b),
    Workload(
        "llama-small",
        "LLaMA with 2 layers of hidden size 64, small enough to execute",
        LlamaOptions(sequence=12, context=12, layers=2),
        _llama_small,
    ),
    Workload(
        "gptj-small",
        "GPT-J with 2 layers of hidden size 64, small enough to execute",
        GPTJOptions(sequence=12, context=12, layers=2),
        _gptj_small,
    ),
)
