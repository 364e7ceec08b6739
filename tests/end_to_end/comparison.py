"""When a compiled result counts as equal to eager's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

TOLERANCES = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Largest error over the largest absolute value of the reference; integers and truth values are exact.

The half types get two of their own spacings (2**-10 and 2**-7): a result may be rounded once more or once less.
"""


def assert_equal_to_eager(
    actual: Any, expected: Any, tolerance: float | None = None, *, smallest_scale: float = 0.0
) -> None:
    """Same structure, types and shapes; values within `tolerance` (default: that of the element type).

    The tolerance is relative to the largest absolute value of the reference, or to `smallest_scale` if that is larger.
    """
    got, got_structure = tree_flatten(actual)
    wanted, structure = tree_flatten(expected)
    assert got_structure == structure
    for position, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if isinstance(b, Tensor):
            _assert_equal_tensor(a, b, tolerance, smallest_scale, f"result {position}")
        else:
            assert a == b, f"result {position}"


def _assert_equal_tensor(
    actual: Tensor, expected: Tensor, tolerance: float | None, smallest_scale: float, name: str
) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), name
    if not expected.dtype.is_floating_point:
        assert torch.equal(actual, expected), f"{name}: {actual} is not {expected}"
        return
    a, b = actual.detach().double(), expected.detach().double()
    finite = b.isfinite()
    assert torch.equal(a[~finite].nan_to_num(), b[~finite].nan_to_num()), f"{name}: {actual} is not {expected}"
    assert torch.equal(a.isnan(), b.isnan()), f"{name}: {actual} is not {expected}"
    if finite.any():
        scale = max(b[finite].abs().max().item(), smallest_scale)
        allowed = (TOLERANCES[expected.dtype] if tolerance is None else tolerance) * scale
        error = (a[finite] - b[finite]).abs().max()
        assert error <= allowed, f"{name}: error {error:.3g}, allowed {allowed:.3g}: {actual} is not {expected}"
