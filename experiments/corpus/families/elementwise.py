"""Elementwise kernels: one output element per iteration, no reuse."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from torch_pim.experiments.corpus.entry import ArgumentSpec
from torch_pim.experiments.corpus.family import Family, positive, same, shaped

T = torch.Tensor
VECTOR = ((1 << 10, 24 << 20),)
MATRIX = ((16, 16384), (16, 16384))


def add(x: T, y: T) -> T:
    return x + y


def multiply_add(x: T, y: T, z: T) -> T:
    return x * y + z


def divide(x: T, y: T) -> T:
    return x / y


def maximum_of_difference(x: T, y: T) -> T:
    return torch.maximum(x - y, y * 0.5)


def select(x: T, y: T) -> T:
    return torch.where(x > 0, x, y)


def gated(x: T, y: T) -> T:
    return functional.silu(x) * y


def chain(x: T, y: T, z: T) -> T:
    return torch.sigmoid((x * y + z) * 0.5) * x


def polynomial(x: T) -> T:
    """Degree 12 by Horner's rule: many operations per byte."""
    result = x * 0.1
    for coefficient in range(11):
        result = (result + 0.01 * coefficient) * x
    return result


def inverse_root(x: T) -> T:
    return torch.rsqrt(x + 1e-5)


def logarithm(x: T) -> T:
    return torch.log(x)


def hard_swish(x: T) -> T:
    return functional.hardswish(x)


def bias(x: T, b: T) -> T:
    return x + b


def row_scale(x: T, s: T) -> T:
    return x * s


def outer_add(x: T, y: T) -> T:
    return x + y


def channel_affine(x: T, s: T, b: T) -> T:
    return x * s + b


def narrow(x: T) -> T:
    return x.to(torch.float16)


def widen(x: T) -> T:
    return x.to(torch.float32) * 2.0


def scramble(x: T) -> T:
    """Integer mixing in the manner of xorshift (Marsaglia, 2003)."""
    x = x ^ (x << 13)
    x = x ^ (x >> 7)
    return (x ^ (x << 5)) * 2654435 + 12345


def threshold(x: T) -> T:
    return (x > 0.25).to(torch.float32)


def _unary(name: str, function: Callable[..., T], half_every: int = 4, positive_values: bool = False) -> Family:
    arguments = positive(same) if positive_values else shaped(same)
    return Family(name, "elementwise-unary", function, arguments, VECTOR, 8, half_every)


FAMILIES = (
    _unary("relu", torch.relu),
    _unary("gelu", functional.gelu),
    _unary("tanh", torch.tanh),
    _unary("exponential", torch.exp),
    _unary("inverse-root", inverse_root, positive_values=True),
    _unary("logarithm", logarithm, positive_values=True),
    _unary("hard-swish", hard_swish),
    _unary("polynomial", polynomial, positive_values=True),
    Family("add", "elementwise-binary", add, shaped(same, same), VECTOR, 10, 4),
    Family("divide", "elementwise-binary", divide, positive(same, same), VECTOR, 7, 5),
    Family("maximum", "elementwise-binary", maximum_of_difference, shaped(same, same), MATRIX, 7),
    Family("select", "elementwise-binary", select, shaped(same, same), VECTOR, 7),
    Family("gated", "elementwise-binary", gated, shaped(same, same), MATRIX, 8, 4),
    Family("multiply-add", "elementwise-ternary", multiply_add, shaped(same, same, same), VECTOR, 7, 5),
    Family("chain", "elementwise-ternary", chain, shaped(same, same, same), MATRIX, 8, 4),
    Family("bias", "broadcast", bias, shaped(same, lambda p: p[1:]), MATRIX, 8, 4),
    Family("row-scale", "broadcast", row_scale, shaped(same, lambda p: (p[0], 1)), MATRIX, 8),
    Family("outer-add", "broadcast", outer_add, shaped(lambda p: (p[0], 1), lambda p: (1, p[1])), MATRIX, 7),
    Family(
        "channel-affine",
        "broadcast",
        channel_affine,
        shaped(same, lambda p: (p[1], 1), lambda p: (p[1], 1)),
        ((1, 32), (16, 1024), (16, 4096)),
        8,
        4,
    ),
    Family("narrow", "convert", narrow, shaped(same), VECTOR, 7),
    Family("widen", "convert", widen, lambda p: (ArgumentSpec(p, "f16"),), VECTOR, 7),
    Family("scramble", "integer", scramble, lambda p: (ArgumentSpec(p, "i32", "index", 1 << 20),), VECTOR, 7),
    Family("threshold", "convert", threshold, shaped(same), MATRIX, 6),
)
