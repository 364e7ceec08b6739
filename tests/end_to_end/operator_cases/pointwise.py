"""Operators that act on each element: arithmetic, functions, comparisons, bits and casts."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .case import Case, between, case, flags, integers, normal, scalar

_SMALL = integers(-9, 10, dtype=torch.int32)

FUNCTIONS: list[Case] = [
    case("abs.default", torch.abs, normal()),
    case("abs.default", torch.abs, integers(-50, 50, dtype=torch.int8), note="int8"),
    case("neg.default", torch.neg, normal()),
    case("exp.default", torch.exp, normal()),
    case("exp2.default", torch.exp2, normal()),
    case("expm1.default", torch.expm1, normal()),
    case("log.default", torch.log, between(0.1, 3.0)),
    case("log2.default", torch.log2, between(0.1, 3.0)),
    case("log1p.default", torch.log1p, between(-0.5, 3.0)),
    case("sqrt.default", torch.sqrt, between(0.0, 3.0)),
    case("rsqrt.default", torch.rsqrt, between(0.1, 3.0)),
    case("reciprocal.default", torch.reciprocal, between(0.5, 3.0)),
    case("sin.default", torch.sin, normal()),
    case("cos.default", torch.cos, normal()),
    case("tan.default", torch.tan, between(-1.0, 1.0)),
    case("asin.default", torch.asin, between(-1.0, 1.0)),
    case("acos.default", torch.acos, between(-1.0, 1.0)),
    case("atan.default", torch.atan, normal()),
    case("sinh.default", torch.sinh, normal()),
    case("cosh.default", torch.cosh, normal()),
    case("tanh.default", torch.tanh, normal()),
    case("asinh.default", torch.asinh, normal()),
    case("acosh.default", torch.acosh, between(1.0, 4.0)),
    case("atanh.default", torch.atanh, between(-0.9, 0.9)),
    case("erf.default", torch.erf, normal()),
    case("ceil.default", torch.ceil, 3.0 * normal()),
    case("floor.default", torch.floor, 3.0 * normal()),
    case("round.default", torch.round, torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4])),
    case("trunc.default", torch.trunc, 3.0 * normal()),
    case("sign.default", torch.sign, normal()),
    case("sgn.default", torch.sgn, normal()),
    case("isnan.default", torch.isnan, torch.tensor([1.0, torch.nan, torch.inf])),
    case("isinf.default", torch.isinf, torch.tensor([1.0, torch.nan, -torch.inf])),
    case("isfinite.default", torch.isfinite, torch.tensor([1.0, torch.nan, torch.inf])),
]

ACTIVATIONS: list[Case] = [
    case("relu.default", torch.relu, normal()),
    case("relu6.default", F.relu6, 5.0 * normal()),
    case("sigmoid.default", torch.sigmoid, normal()),
    case("silu.default", F.silu, normal()),
    case("gelu.default", F.gelu, normal()),
    case("gelu.default", lambda x: F.gelu(x, approximate="tanh"), normal(), note="tanh"),
    case("elu.default", F.elu, normal()),
    case("leaky_relu.default", F.leaky_relu, normal()),
    case("prelu.default", F.prelu, normal(2, 3, 5), between(0.0, 1.0, 3)),
    case("hardtanh.default", F.hardtanh, 2.0 * normal()),
    case("hardswish.default", F.hardswish, 3.0 * normal()),
    case("hardsigmoid.default", F.hardsigmoid, 3.0 * normal()),
    case("softplus.default", F.softplus, normal()),
    case("log_sigmoid.default", F.logsigmoid, normal()),
    case("glu.default", F.glu, normal(3, 6)),
]

ARITHMETIC: list[Case] = [
    case("add.Tensor", torch.add, normal(), normal()),
    case(
        "add.Tensor", torch.add, integers(-50, 50, dtype=torch.int8), integers(-50, 50, dtype=torch.int8), note="int8"
    ),
    case("add.Tensor", lambda x, y: torch.add(x, y, alpha=2.5), normal(3, 1), normal(1, 5), note="broadcast"),
    case("add.Tensor", torch.add, normal(), integers(-9, 9), note="mixed"),
    case("add.Tensor", torch.add, flags(), flags(), note="bool"),
    case("sub.Tensor", torch.sub, normal(), normal()),
    case("rsub.Scalar", lambda x: torch.rsub(x, 2.0), normal()),
    case("rsub.Tensor", torch.rsub, normal(), normal()),
    case("mul.Tensor", torch.mul, normal(), normal()),
    case("mul.Tensor", torch.mul, _SMALL, _SMALL, note="int32"),
    case("mul.Tensor", torch.mul, normal(dtype=torch.float16), normal(dtype=torch.float16), note="f16"),
    case("div.Tensor", torch.div, normal(), between(0.5, 2.0)),
    case("div.Tensor", torch.div, _SMALL, integers(1, 5, dtype=torch.int32), note="int32"),
    case("div.Tensor_mode", lambda x, y: torch.div(x, y, rounding_mode="floor"), 9 * normal(), between(0.5, 2.0)),
    case(
        "div.Tensor_mode",
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        _SMALL,
        integers(1, 5, dtype=torch.int32),
        note="trunc",
    ),
    case("div.Scalar", lambda x: torch.ops.aten.div.Scalar(x, 4.0), normal()),
    case("add.Scalar", lambda x: torch.ops.aten.add.Scalar(x, 4.0), normal()),
    case("mul.Scalar", lambda x: torch.ops.aten.mul.Scalar(x, 4.0), normal()),
    case("sub.Scalar", lambda x: torch.ops.aten.sub.Scalar(x, 4), integers(0, 9)),
    case("floor_divide.default", torch.floor_divide, integers(-30, 30), integers(1, 7)),
    case("remainder.Tensor", torch.remainder, 5 * normal(), between(0.5, 2.0)),
    case("remainder.Tensor", torch.remainder, integers(-30, 30), integers(1, 7), note="int64"),
    case("remainder.Scalar", lambda x: torch.remainder(x, -3), integers(-30, 30)),
    case("fmod.Tensor", torch.fmod, 5 * normal(), between(0.5, 2.0)),
    case("fmod.Scalar", lambda x: torch.fmod(x, 1.5), 5 * normal()),
    case("pow.Tensor_Scalar", lambda x: x**3, normal()),
    case("pow.Tensor_Scalar", lambda x: x**-0.5, between(0.1, 2.0), note="root"),
    case("pow.Tensor_Tensor", torch.pow, between(0.1, 2.0), normal()),
    case("pow.Scalar", lambda x: torch.pow(2.0, x), normal()),
    case("maximum.default", torch.maximum, normal(), normal()),
    case("minimum.default", torch.minimum, normal(), normal()),
    case("maximum.default", torch.maximum, _SMALL, -_SMALL, note="int32"),
    case("fmax.default", torch.fmax, torch.tensor([1.0, torch.nan, 2.0]), torch.tensor([torch.nan, 1.0, 3.0])),
    case("fmin.default", torch.fmin, torch.tensor([1.0, torch.nan, 2.0]), torch.tensor([torch.nan, 1.0, 3.0])),
    case("atan2.default", torch.atan2, normal(), normal()),
    case("lerp.Scalar", lambda x, y: torch.lerp(x, y, 0.25), normal(), normal()),
    case("lerp.Tensor", torch.lerp, normal(), normal(), between(0.0, 1.0)),
    case("addcmul.default", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), normal(), normal(), normal()),
    case("addcdiv.default", torch.addcdiv, normal(), normal(), between(0.5, 2.0)),
    case("clamp.default", lambda x: x.clamp(-0.5, 0.5), normal()),
    case("clamp.Tensor", lambda x, y: x.clamp(min=y), normal(), normal()),
    case("clamp_min.default", lambda x: torch.clamp_min(x, 0.1), normal()),
    case("clamp_max.default", lambda x: torch.clamp_max(x, 0.1), normal()),
]

COMPARISONS: list[Case] = [
    case("eq.Tensor", torch.eq, integers(0, 3), integers(0, 3)),
    case("eq.Scalar", lambda x: x == 1, integers(0, 3)),
    case("ne.Tensor", torch.ne, integers(0, 3), integers(0, 3)),
    case("ne.Scalar", lambda x: x != 1, integers(0, 3)),
    case("lt.Tensor", torch.lt, normal(), normal()),
    case("lt.Scalar", lambda x: x < 0.1, normal()),
    case("le.Tensor", torch.le, integers(0, 3), integers(0, 3)),
    case("le.Scalar", lambda x: x <= 1, integers(0, 3)),
    case("gt.Tensor", torch.gt, normal(), normal()),
    case("gt.Scalar", lambda x: x > 0.1, normal()),
    case("ge.Tensor", torch.ge, integers(0, 3), integers(0, 3)),
    case("ge.Scalar", lambda x: x >= 1, integers(0, 3)),
    case("where.self", torch.where, flags(), normal(), normal()),
    case("where.ScalarOther", lambda x: torch.where(x > 0, x, -1.0), normal()),
    case("masked_fill.Scalar", lambda x, mask: x.masked_fill(mask, -2.0), normal(), flags()),
    case("masked_fill.Tensor", lambda x, mask, y: x.masked_fill(mask, y), normal(), flags(), scalar(3.0)),
]

BITS: list[Case] = [
    case("logical_and.default", torch.logical_and, flags(), flags()),
    case("logical_or.default", torch.logical_or, flags(), flags()),
    case("logical_xor.default", torch.logical_xor, flags(), flags()),
    case("logical_not.default", torch.logical_not, normal()),
    case("bitwise_and.Tensor", torch.bitwise_and, _SMALL, integers(-9, 10, dtype=torch.int32)),
    case("bitwise_or.Tensor", torch.bitwise_or, flags(), flags(), note="bool"),
    case(
        "bitwise_xor.Tensor", torch.bitwise_xor, integers(-90, 90, dtype=torch.int8), integers(-9, 9, dtype=torch.int8)
    ),
    case("bitwise_not.default", torch.bitwise_not, integers(-9, 10)),
    case("bitwise_left_shift.Tensor", torch.bitwise_left_shift, _SMALL, integers(0, 5, dtype=torch.int32)),
    case("bitwise_right_shift.Tensor", torch.bitwise_right_shift, _SMALL, integers(0, 5, dtype=torch.int32)),
]

_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int16)
_TYPES += (torch.int8, torch.uint8, torch.bool)


def _all_casts(x: torch.Tensor) -> list[torch.Tensor]:
    return [x.to(dtype) + 0 for dtype in _TYPES if dtype != x.dtype]


CASTS: list[Case] = [
    case("to.dtype", _all_casts, source, note=f"from {str(source.dtype).removeprefix('torch.')}")
    for source in (
        between(0.0, 99.0), between(0.0, 99.0).half(), between(0.0, 99.0).bfloat16(), between(0.0, 99.0).double(),
        integers(-99, 99), integers(-99, 99, dtype=torch.int32), integers(-99, 99, dtype=torch.int16),
        integers(-99, 99, dtype=torch.int8), integers(0, 250, dtype=torch.uint8), flags(),
    )
]  # fmt: skip
