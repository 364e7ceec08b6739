"""Matrix products of all aspect ratios, their batched forms, and attention."""

from __future__ import annotations

import torch
from torch.nn import functional

from torch_pim.experiments.corpus.entry import ArgumentSpec
from torch_pim.experiments.corpus.family import Family, same, shaped

T = torch.Tensor
MATRIX = ((64, 24576), (64, 24576))
BATCHED = ((2, 256), (4, 512), (8, 256), (4, 512))


def product(a: T, b: T) -> T:
    return a @ b


def linear(x: T, weight: T, bias: T) -> T:
    return functional.linear(x, weight, bias)


def linear_relu(x: T, weight: T, bias: T) -> T:
    return torch.relu(functional.linear(x, weight, bias))


def transposed_product(a: T, b: T) -> T:
    return a.t() @ b


def one_row_linear(x: T, weight: T) -> T:
    return functional.linear(x, weight)


def scores(query: T, key: T) -> T:
    return query @ key.transpose(-1, -2)


def attention(query: T, key: T, value: T) -> T:
    weights = torch.softmax(query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5), -1)
    return weights @ value


def one_token_attention(query: T, key: T, value: T) -> T:
    weights = torch.softmax(query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5), -1)
    return weights @ value


def outer(x: T, y: T) -> T:
    return torch.outer(x, y)


def dequantised_linear(x: T, weight: T, scale: T) -> T:
    """Weight-only quantisation: i8 weights, one scale per row."""
    return functional.linear(x, weight.to(torch.float32) * scale)


def pairwise_distance(x: T, y: T) -> T:
    """Squared Euclidean distances of all pairs of rows."""
    return (x[:, None] - y[None]).square().sum(-1)


FAMILIES = (
    Family(
        "product",
        "gemm",
        product,
        shaped(lambda p: (p[0], p[1]), lambda p: (p[1], p[2])),
        ((16, 4096), (16, 8192), (16, 4096)),
        12,
        6,
    ),
    Family(
        "linear",
        "gemm",
        linear,
        shaped(lambda p: (p[0], p[1]), lambda p: (p[2], p[1]), lambda p: (p[2],)),
        ((16, 2048), (64, 8192), (64, 8192)),
        11,
        5,
    ),
    Family(
        "linear-relu",
        "gemm",
        linear_relu,
        shaped(lambda p: (p[0], p[1]), lambda p: (p[2], p[1]), lambda p: (p[2],)),
        ((16, 1024), (32, 4096), (32, 4096)),
        6,
    ),
    Family(
        "transposed-product",
        "gemm",
        transposed_product,
        shaped(lambda p: (p[1], p[0]), lambda p: (p[1], p[2])),
        ((16, 2048), (16, 4096), (16, 2048)),
        7,
    ),
    Family(
        "skinny-linear",
        "gemm-skinny",
        linear,
        shaped(lambda p: (p[0], p[1]), lambda p: (p[2], p[1]), lambda p: (p[2],)),
        ((2, 16), (256, 16384), (256, 16384)),
        10,
        4,
    ),
    Family("matrix-vector", "gemv", product, shaped(same, lambda p: (p[1],)), MATRIX, 10, 5),
    Family("vector-matrix", "gemv", product, shaped(lambda p: (p[0],), same), MATRIX, 8),
    Family("one-row-linear", "gemv", one_row_linear, shaped(lambda p: (1, p[1]), same), MATRIX, 11, 4),
    Family(
        "dequantised-linear",
        "gemv-quantised",
        dequantised_linear,
        lambda p: (
            ArgumentSpec((1, p[1])),
            ArgumentSpec((p[0], p[1]), "i8", "index", 100),
            ArgumentSpec((p[0], 1)),
        ),
        ((64, 8192), (64, 8192)),
        6,
    ),
    Family("outer", "broadcast", outer, shaped(lambda p: (p[0],), lambda p: (p[1],)), ((32, 8192), (32, 8192)), 6),
    Family(
        "batched-product",
        "batched-gemm",
        product,
        shaped(lambda p: (p[0], p[1], p[2]), lambda p: (p[0], p[2], p[3])),
        BATCHED,
        8,
        5,
    ),
    Family(
        "scores",
        "batched-gemm",
        scores,
        shaped(lambda p: (p[0], p[1], p[2]), lambda p: (p[0], p[3], p[2])),
        BATCHED,
        8,
        5,
    ),
    Family(
        "attention",
        "attention",
        attention,
        shaped(lambda p: (p[0], p[1], p[2]), lambda p: (p[0], p[1], p[2]), lambda p: (p[0], p[1], p[2])),
        ((2, 48), (16, 768), (16, 192)),
        7,
        5,
    ),
    Family(
        "one-token-attention",
        "attention",
        one_token_attention,
        shaped(lambda p: (p[0], 1, p[2]), lambda p: (p[0], p[1], p[2]), lambda p: (p[0], p[1], p[2])),
        ((4, 256), (32, 6144), (16, 192)),
        10,
        4,
    ),
    Family(
        "pairwise-distance",
        "distance",
        pairwise_distance,
        shaped(lambda p: (p[0], p[2]), lambda p: (p[1], p[2])),
        ((16, 2048), (16, 2048), (4, 128)),
        7,
    ),
)
