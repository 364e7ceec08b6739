"""Operators that run along an axis: reductions, norms, softmax, scans, orders and losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .case import CUBE, Case, between, case, distinct, flags, integers, normal

SUMS: list[Case] = [
    case("sum.default", torch.sum, normal(*CUBE)),
    case("sum.default", torch.sum, integers(-9, 9, dtype=torch.int32), note="int32"),
    case("sum.dim_IntList", lambda x: [x.sum(0), x.sum(1), x.sum(-1, keepdim=True), x.sum((0, 2))], normal(*CUBE)),
    case("mean.default", torch.mean, normal(*CUBE)),
    case("mean.dim", lambda x: [x.mean(0), x.mean(1), x.mean(2), x.mean((0, 1))], normal(*CUBE)),
    case("mean.dim", lambda x: x.mean(1), normal(*CUBE, dtype=torch.bfloat16), note="bf16"),
    case("prod.default", torch.prod, normal()),
    case("prod.dim_int", lambda x: [x.prod(0), x.prod(1)], normal(*CUBE)),
    case("any.default", torch.any, flags()),
    case("any.dim", lambda x: [x.any(0), x.any(1)], flags()),
    case("all.default", torch.all, flags()),
    case("all.dim", lambda x: [x.all(0), x.all(-1)], flags()),
]

EXTREMES: list[Case] = [
    case("amax.default", lambda x: [x.amax(0), x.amax(1), x.amax((0, 2)), x.amax()], normal(*CUBE)),
    case("amin.default", lambda x: [x.amin(0), x.amin(1), x.amin((0, 2))], normal(*CUBE)),
    case("max.default", torch.max, normal()),
    case("min.default", torch.min, integers(-9, 9, dtype=torch.int32)),
    case("max.dim", lambda x: [*x.max(0), *x.max(1), *x.max(2)], distinct(*CUBE)),
    case("min.dim", lambda x: [*x.min(0), *x.min(1)], distinct(*CUBE)),
    case("max.other", torch.max, normal(), normal()),
    case(
        "argmax.default", lambda x: [x.argmax(), x.argmax(0), x.argmax(1), x.argmax(-1, keepdim=True)], distinct(*CUBE)
    ),
    case("argmin.default", lambda x: [x.argmin(), x.argmin(1)], distinct(*CUBE)),
]

MOMENTS: list[Case] = [
    case("var.correction", lambda x: x.var((0, 2), correction=1), normal(*CUBE)),
    case("std.correction", lambda x: x.std(1, correction=0), normal(*CUBE)),
    case("var_mean.correction", lambda x: torch.var_mean(x, 1, correction=1), normal(*CUBE)),
    case(
        "linalg_vector_norm.default",
        lambda x: [torch.linalg.vector_norm(x, p, 1) for p in (1, 2, 3, float("inf"))] + [torch.linalg.vector_norm(x)],
        normal(*CUBE),
    ),
]

SOFTMAX: list[Case] = [
    case("softmax.int", lambda x: [x.softmax(axis) for axis in (0, 1, 2, -1)], normal(*CUBE)),
    case("softmax.int", lambda x: x.softmax(-1), normal(*CUBE, dtype=torch.float16), note="f16"),
    case("log_softmax.int", lambda x: [x.log_softmax(axis) for axis in (0, 1, 2)], normal(*CUBE)),
    case("logsumexp.default", lambda x: [x.logsumexp(0), x.logsumexp((1, 2))], normal(*CUBE)),
]

SCANS: list[Case] = [
    case("cumsum.default", lambda x: [x.cumsum(0), x.cumsum(1), x.cumsum(-1)], normal(*CUBE)),
    case("cumsum.default", lambda x: x.cumsum(1), integers(-9, 9), note="int64"),
    case("cumprod.default", lambda x: x.cumprod(1), normal(*CUBE)),
]

ORDERS: list[Case] = [
    case("sort.default", lambda x: [*x.sort(0), *x.sort(-1, descending=True)], distinct(*CUBE)),
    case("sort.stable", lambda x: x.sort(dim=1, stable=True), integers(0, 3)),
    case("argsort.default", lambda x: x.argsort(1), distinct(*CUBE)),
    case("topk.default", lambda x: [*x.topk(2, -1), *x.topk(3, 0)], distinct(*CUBE)),
    case("topk.default", lambda x: x.topk(2, -1, largest=False), distinct(), note="smallest"),
]

NORMS: list[Case] = [
    case("layer_norm.default", lambda x, w, b: F.layer_norm(x, (5,), w, b), normal(2, 3, 5), normal(5), normal(5)),
    case("layer_norm.default", lambda x: F.layer_norm(x, (3, 5)), normal(2, 3, 5), note="two axes"),
    case("layer_norm.default", lambda x: F.layer_norm(x, (5,)), normal(2, 3, 5, dtype=torch.float16), note="f16"),
    case("group_norm.default", lambda x, w, b: F.group_norm(x, 3, w, b), normal(2, 6, 5), normal(6), normal(6)),
    case("instance_norm.default", F.instance_norm, normal(2, 3, 4, 5)),
    case("rms_norm.default", lambda x, w: F.rms_norm(x, (5,), w), normal(2, 3, 5), normal(5)),
    case(
        "batch_norm.default",
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
        normal(2, 3, 4, 5),
        normal(3),
        between(0.5, 2.0, 3),
        normal(3),
        normal(3),
    ),
    case("batch_norm.default", lambda x: F.batch_norm(x, None, None, training=True), normal(4, 3, 5), note="training"),
]

LOSSES: list[Case] = [
    case("mse_loss.default", F.mse_loss, normal(), normal()),
    case("l1_loss.default", F.l1_loss, normal(), normal()),
    case("smooth_l1_loss.default", F.smooth_l1_loss, normal(), normal()),
    case("nll_loss_nd.default", F.nll_loss, normal(4, 6).log_softmax(1), integers(0, 6, 4)),
    case("cross_entropy_loss.default", F.cross_entropy, normal(4, 6), integers(0, 6, 4)),
    case(
        "cross_entropy_loss.default",
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
        normal(4, 6),
        integers(0, 6, 4),
        note="smooth",
    ),
    case("binary_cross_entropy_with_logits.default", F.binary_cross_entropy_with_logits, normal(), between(0.0, 1.0)),
]
