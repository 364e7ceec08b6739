"""The margin that XGBoost starts from, before any tree is added."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from torch_pim.models.learned.tree_checks import refuse


def parse_base_score(text: Any) -> np.float32:
    """Base score of a model file: `"5.0E-1"` before XGBoost 3.1, `"[5.0E-1]"` since. Raises UnsupportedFormat."""
    try:
        value = np.float32(str(text).strip().removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise refuse(f"base_score is {text!r}: expected one number") from error
    if not np.isfinite(value):
        raise refuse(f"base_score is {text!r}: expected a finite number")
    return value


def base_margin(score: np.float32, objective: str) -> np.float32:
    """The score itself for regression; its log-odds -log(1/p - 1) in float32 for logistic models."""
    if objective != "binary:logistic":
        return score
    if not 0.0 < float(score) < 1.0:
        raise refuse(f"base_score {score} of a logistic model: expected a probability between 0 and 1")
    one = np.float32(1.0)
    return np.float32(-_logf(float(one / score - one)))


def _logf(value: float) -> float:
    """The C library's logf, which XGBoost calls: it is not always the correctly rounded logarithm."""
    try:
        function = ctypes.CDLL(None).logf
    except (OSError, AttributeError, TypeError):
        return math.log(value)  # rounded by the caller; at most one unit in the last place away
    function.restype = ctypes.c_float
    function.argtypes = [ctypes.c_float]
    return float(function(value))
