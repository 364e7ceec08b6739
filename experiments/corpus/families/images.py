"""Convolutions, pooling, resampling and stencils."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from torch_pim.experiments.corpus.design import Point
from torch_pim.experiments.corpus.family import Family, same, shaped

T = torch.Tensor
CONV = ((1, 8), (3, 256), (7, 96), (8, 512))
DEPTHWISE = ((1, 8), (16, 1024), (7, 112))
IMAGE = ((1, 32), (8, 1024), (6, 112))


def conv3x3(x: T, weight: T) -> T:
    return functional.conv2d(x, weight, padding=1)


def conv3x3_strided(x: T, weight: T) -> T:
    return functional.conv2d(x, weight, stride=2, padding=1)


def conv1x1(x: T, weight: T) -> T:
    return functional.conv2d(x, weight)


def conv7x7_strided(x: T, weight: T) -> T:
    return functional.conv2d(x, weight, stride=2, padding=3)


def depthwise3x3(x: T, weight: T) -> T:
    return functional.conv2d(x, weight, padding=1, groups=x.shape[1])


def depthwise5x5_strided(x: T, weight: T) -> T:
    return functional.conv2d(x, weight, stride=2, padding=2, groups=x.shape[1])


def conv1d(x: T, weight: T) -> T:
    return functional.conv1d(x, weight, padding=2)


def max_pool(x: T) -> T:
    return functional.max_pool2d(x, 3, 2)


def average_pool(x: T) -> T:
    return functional.avg_pool2d(x, 2, 2)


def global_pool(x: T) -> T:
    return x.mean((2, 3))


def upsample(x: T) -> T:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")


def pixel_shuffle(x: T) -> T:
    return functional.pixel_shuffle(x, 2)


def five_point(x: T) -> T:
    """The Laplace stencil on the inner points of a grid."""
    return x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1] - 4.0 * x[1:-1, 1:-1]


def smooth(x: T) -> T:
    return (x[:-2] + 2.0 * x[1:-1] + x[2:]) * 0.25


def _image(p: Point) -> Point:
    return (p[0], p[1], p[2], p[2])


def _weight(size: int) -> Callable[[Point], Point]:
    return lambda p: (p[3], p[1], size, size)


FAMILIES = (
    Family("conv3x3", "convolution", conv3x3, shaped(_image, _weight(3)), CONV, 8),
    Family("conv3x3-strided", "convolution", conv3x3_strided, shaped(_image, _weight(3)), CONV, 6),
    Family("conv1x1", "convolution", conv1x1, shaped(_image, _weight(1)), CONV, 8),
    Family(
        "conv7x7-strided",
        "convolution",
        conv7x7_strided,
        shaped(_image, _weight(7)),
        ((1, 4), (1, 8), (64, 256), (16, 96)),
        5,
    ),
    Family(
        "conv1d",
        "convolution",
        conv1d,
        shaped(lambda p: (p[0], p[1], p[2]), lambda p: (p[3], p[1], 5)),
        ((1, 8), (8, 256), (64, 4096), (8, 256)),
        6,
    ),
    Family("depthwise3x3", "depthwise", depthwise3x3, shaped(_image, lambda p: (p[1], 1, 3, 3)), DEPTHWISE, 7),
    Family(
        "depthwise5x5-strided",
        "depthwise",
        depthwise5x5_strided,
        shaped(_image, lambda p: (p[1], 1, 5, 5)),
        DEPTHWISE,
        6,
    ),
    Family("max-pool", "pooling", max_pool, shaped(_image), IMAGE, 7),
    Family("average-pool", "pooling", average_pool, shaped(_image), IMAGE, 7),
    Family("global-pool", "pooling", global_pool, shaped(_image), IMAGE, 7),
    Family("upsample", "resampling", upsample, shaped(_image), ((1, 16), (8, 256), (8, 96)), 6),
    Family(
        "pixel-shuffle",
        "resampling",
        pixel_shuffle,
        shaped(lambda p: (p[0], 4 * p[1], p[2], p[2])),
        ((1, 16), (4, 128), (8, 96)),
        6,
    ),
    Family("five-point", "stencil", five_point, shaped(same), ((64, 6144), (64, 6144)), 8),
    Family("smooth", "stencil", smooth, shaped(same), ((1 << 10, 16 << 20),), 7),
)
