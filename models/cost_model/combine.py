"""How the components of one side overlap into its time; for single numbers and numpy arrays alike."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", float, NDArray[np.float64])

OVERLAP = 4.0
"""Exponent of the norm that joins components which overlap well: their maximum, plus 19 % where two are equal."""


def host_total(compute: Number, latency: Number, bandwidth: Number, overhead: Number) -> Number:
    """Out-of-order cores overlap all three components; starting and joining threads comes on top."""
    return _norm(_norm(compute, latency, OVERLAP), bandwidth, OVERLAP) + overhead


def device_total(
    compute: Number, latency: Number, bandwidth: Number, overhead: Number, outstanding_misses: Number
) -> Number:
    """A blocking core adds its misses to its computation; each further outstanding miss lets them overlap more.

    The exponent of the norm is the number of outstanding misses: 1 gives the sum, large numbers the maximum.
    """
    core = _norm(compute, latency, outstanding_misses)
    return _norm(core, bandwidth, OVERLAP) + overhead


def _norm(a: Number, b: Number, exponent: float | Number) -> Number:
    # Scaled by the maximum, so that no power overflows.
    largest = np.maximum(np.maximum(a, b), 1e-30)
    joined: Number = largest * ((a / largest) ** exponent + (b / largest) ** exponent) ** (1.0 / exponent)
    return joined
