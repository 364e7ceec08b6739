"""Reductions, softmax and normalisations."""

from __future__ import annotations

import torch
from torch.nn import functional

from torch_pim.experiments.corpus.entry import ArgumentSpec
from torch_pim.experiments.corpus.family import Family, same, shaped

T = torch.Tensor
MATRIX = ((4, 65536), (16, 65536))
TENSOR = ((1, 64), (8, 512), (16, 4096))
VECTOR = ((1 << 10, 32 << 20),)
IMAGE = ((1, 16), (16, 512), (5, 112))


def row_sum(x: T) -> T:
    return x.sum(-1)


def row_maximum(x: T) -> T:
    return x.amax(-1)


def row_mean_square(x: T) -> T:
    return x.square().mean(-1)


def column_sum(x: T) -> T:
    return x.sum(0)


def column_maximum(x: T) -> T:
    return x.amax(0)


def middle_sum(x: T) -> T:
    return x.sum(1)


def total_sum(x: T) -> T:
    return x.sum()


def dot(x: T, y: T) -> T:
    return (x * y).sum()


def row_variance(x: T) -> T:
    return x.var(-1)


def row_argmax(x: T) -> T:
    return x.argmax(-1)


def row_distance(x: T, y: T) -> T:
    """Squared distance of every row of x to one vector."""
    return (x - y).square().sum(-1)


def softmax(x: T) -> T:
    return torch.softmax(x, -1)


def middle_softmax(x: T) -> T:
    return torch.softmax(x, 1)


def log_softmax(x: T) -> T:
    return torch.log_softmax(x, -1)


def masked_softmax(x: T, mask: T) -> T:
    return torch.softmax(x * 0.125 + mask, -1)


def layer_norm(x: T, weight: T, bias: T) -> T:
    return functional.layer_norm(x, (x.shape[-1],), weight, bias)


def rms_norm(x: T, weight: T) -> T:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def normalise(x: T) -> T:
    return functional.normalize(x, dim=-1)


def group_norm(x: T, weight: T, bias: T) -> T:
    groups = next(g for g in (8, 6, 5, 4, 3, 2, 1) if x.shape[1] % g == 0)
    return functional.group_norm(x, groups, weight, bias)


def batch_norm(x: T, mean: T, variance: T, weight: T, bias: T) -> T:
    return functional.batch_norm(x, mean, variance, weight, bias, False)


def _image(p: tuple[int, ...]) -> tuple[int, ...]:
    return (p[0], p[1], p[2], p[2])


def _channels(p: tuple[int, ...]) -> tuple[int, ...]:
    return (p[1],)


FAMILIES = (
    Family("row-sum", "row-reduction", row_sum, shaped(same), MATRIX, 10, 5),
    Family("row-maximum", "row-reduction", row_maximum, shaped(same), MATRIX, 7),
    Family("row-mean-square", "row-reduction", row_mean_square, shaped(same), MATRIX, 7, 5),
    Family("row-variance", "row-reduction", row_variance, shaped(same), MATRIX, 7),
    Family("row-distance", "row-reduction", row_distance, shaped(same, lambda p: p[1:]), MATRIX, 7),
    Family("row-argmax", "row-reduction", row_argmax, shaped(same), ((1, 2048), (64, 65536)), 7),
    Family("column-sum", "column-reduction", column_sum, shaped(same), MATRIX, 8, 5),
    Family("column-maximum", "column-reduction", column_maximum, shaped(same), MATRIX, 6),
    Family("middle-sum", "column-reduction", middle_sum, shaped(same), TENSOR, 7),
    Family("total-sum", "full-reduction", total_sum, shaped(same), VECTOR, 7),
    Family("dot", "full-reduction", dot, shaped(same, same), VECTOR, 7),
    Family("softmax", "softmax", softmax, shaped(same), MATRIX, 10, 5),
    Family("middle-softmax", "softmax", middle_softmax, shaped(same), TENSOR, 6),
    Family("log-softmax", "softmax", log_softmax, shaped(same), MATRIX, 6),
    Family(
        "masked-softmax",
        "softmax",
        masked_softmax,
        shaped(lambda p: (p[0], p[1], p[2]), lambda p: (1, p[1], p[2])),
        ((1, 96), (1, 1024), (32, 2048)),
        8,
        4,
    ),
    Family("layer-norm", "norm", layer_norm, shaped(same, lambda p: p[1:], lambda p: p[1:]), MATRIX, 10, 5),
    Family("rms-norm", "norm", rms_norm, shaped(same, lambda p: p[1:]), MATRIX, 8, 5),
    Family("normalise", "norm", normalise, shaped(same), MATRIX, 6),
    Family("group-norm", "norm", group_norm, shaped(_image, _channels, _channels), IMAGE, 7),
    Family(
        "batch-norm",
        "norm",
        batch_norm,
        lambda p: (
            ArgumentSpec(_image(p)),
            ArgumentSpec(_channels(p)),
            ArgumentSpec(_channels(p), values="positive"),
            ArgumentSpec(_channels(p)),
            ArgumentSpec(_channels(p)),
        ),
        IMAGE,
        7,
    ),
)
