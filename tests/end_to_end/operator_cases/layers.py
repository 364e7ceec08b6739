"""Contractions, convolutions, pools and resampling."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .case import Case, case, integers, normal

_HALF, _BRAIN = torch.float16, torch.bfloat16

CONTRACTIONS: list[Case] = [
    case("mm.default", torch.mm, normal(3, 7), normal(7, 5)),
    case("mm.default", torch.mm, normal(3, 7, dtype=_HALF), normal(7, 5, dtype=_HALF), note="f16"),
    case("mm.default", torch.mm, normal(3, 7, dtype=_BRAIN), normal(7, 5, dtype=_BRAIN), note="bf16"),
    case(
        "mm.default",
        torch.mm,
        integers(-9, 9, 3, 7, dtype=torch.int32),
        integers(-9, 9, 7, 5, dtype=torch.int32),
        note="int32",
    ),
    case("mm.default", torch.mm, integers(-9, 9, 3, 7), integers(-9, 9, 7, 5), note="int64"),
    case("bmm.default", torch.bmm, normal(2, 3, 7), normal(2, 7, 5)),
    case(
        "addmm.default",
        lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2.0),
        normal(5),
        normal(3, 7),
        normal(7, 5),
    ),
    case("baddbmm.default", torch.baddbmm, normal(2, 3, 5), normal(2, 3, 7), normal(2, 7, 5)),
    case("mv.default", torch.mv, normal(3, 7), normal(7)),
    case("dot.default", torch.dot, normal(7), normal(7)),
    case("outer.default", torch.outer, normal(3), normal(5)),
    case("matmul.default", torch.matmul, normal(2, 3, 4, 7), normal(3, 7, 5)),
    case("matmul.default", torch.matmul, normal(2, 3, 7), normal(7), note="vector"),
    case("linear.default", F.linear, normal(2, 3, 7), normal(5, 7), normal(5)),
    case("linear.default", F.linear, normal(3, 7), normal(5, 7), note="no bias"),
    case("einsum.default", lambda x, y: torch.einsum("bqhd,bkhd->bhqk", x, y), normal(2, 4, 3, 5), normal(2, 6, 3, 5)),
    case(
        "scaled_dot_product_attention.default",
        F.scaled_dot_product_attention,
        normal(1, 2, 6, 8),
        normal(1, 2, 7, 8),
        normal(1, 2, 7, 8),
    ),
    case(
        "scaled_dot_product_attention.default",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        normal(1, 2, 6, 8),
        normal(1, 2, 6, 8),
        normal(1, 2, 6, 8),
        note="causal",
    ),
    case(
        "scaled_dot_product_attention.default",
        F.scaled_dot_product_attention,
        normal(1, 2, 6, 8),
        normal(1, 2, 7, 8),
        normal(1, 2, 7, 8),
        torch.arange(42).reshape(6, 7) % 5 > 0,
        note="mask",
    ),
    case(
        "scaled_dot_product_attention.default",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        normal(1, 4, 6, 8),
        normal(1, 2, 6, 8),
        normal(1, 2, 6, 8),
        note="grouped",
    ),
]

CONVOLUTIONS: list[Case] = [
    case("conv1d.default", lambda x, w, b: F.conv1d(x, w, b, padding=1), normal(2, 3, 9), normal(4, 3, 3), normal(4)),
    case("conv1d.padding", lambda x, w: F.conv1d(x, w, padding="same"), normal(2, 3, 9), normal(4, 3, 3)),
    case(
        "conv2d.default",
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1),
        normal(2, 3, 7, 7),
        normal(4, 3, 3, 3),
        normal(4),
    ),
    case(
        "conv2d.default",
        lambda x, w: F.conv2d(x, w, dilation=2),
        normal(1, 3, 7, 7),
        normal(4, 3, 3, 3),
        note="dilated",
    ),
    case(
        "conv2d.default", lambda x, w: F.conv2d(x, w, groups=2), normal(1, 4, 5, 5), normal(6, 2, 3, 3), note="grouped"
    ),
    case(
        "conv2d.default",
        lambda x, w: F.conv2d(x, w, groups=4),
        normal(1, 4, 5, 5),
        normal(4, 1, 3, 3),
        note="depthwise",
    ),
    case("conv2d.padding", lambda x, w: F.conv2d(x, w, padding="same"), normal(1, 3, 5, 5), normal(4, 3, 3, 3)),
    case("conv3d.default", F.conv3d, normal(1, 2, 4, 5, 5), normal(3, 2, 3, 3, 3)),
    case("conv_transpose1d.default", lambda x, w: F.conv_transpose1d(x, w, stride=2), normal(1, 3, 5), normal(3, 4, 3)),
    case(
        "conv_transpose2d.input",
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        normal(1, 3, 4, 4),
        normal(3, 4, 3, 3),
    ),
]

POOLS: list[Case] = [
    case("max_pool1d.default", lambda x: F.max_pool1d(x, 3, 2), normal(2, 3, 9)),
    case("max_pool2d.default", lambda x: F.max_pool2d(x, 3, 2, 1), normal(2, 3, 7, 7)),
    case(
        "max_pool2d_with_indices.default",
        lambda x: torch.ops.aten.max_pool2d_with_indices(x, [2, 2]),
        normal(1, 3, 6, 6),
    ),
    case("avg_pool1d.default", lambda x: F.avg_pool1d(x, 3, 2, 1), normal(2, 3, 9)),
    case("avg_pool2d.default", lambda x: F.avg_pool2d(x, 3, 2, 1), normal(2, 3, 7, 7)),
    case(
        "avg_pool2d.default",
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        normal(2, 3, 7, 7),
        note="inner",
    ),
    case("adaptive_avg_pool1d.default", lambda x: F.adaptive_avg_pool1d(x, 4), normal(2, 3, 9)),
    case(
        "adaptive_avg_pool2d.default",
        lambda x: [F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, 4)],
        normal(1, 3, 7, 7),
    ),
]

RESAMPLING: list[Case] = [
    case("upsample_nearest1d.vec", lambda x: F.interpolate(x, scale_factor=2.0), normal(1, 2, 5)),
    case("upsample_nearest2d.vec", lambda x: F.interpolate(x, scale_factor=2.0), normal(1, 2, 3, 5)),
    case("upsample_nearest2d.vec", lambda x: F.interpolate(x, size=(7, 4)), normal(1, 2, 3, 5), note="odd"),
    case(
        "_upsample_nearest_exact2d.vec",
        lambda x: F.interpolate(x, size=(7, 4), mode="nearest-exact"),
        normal(1, 2, 3, 5),
    ),
    case("upsample_linear1d.vec", lambda x: F.interpolate(x, size=8, mode="linear"), normal(1, 2, 5)),
    case("upsample_bilinear2d.vec", lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"), normal(1, 2, 3, 5)),
    case(
        "upsample_bilinear2d.vec",
        lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True),
        normal(1, 2, 3, 5),
        note="corners",
    ),
    case("pixel_shuffle.default", lambda x: F.pixel_shuffle(x, 2), normal(1, 8, 3, 5)),
]
