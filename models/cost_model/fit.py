"""Fitting the constants of the cost model to labels: robust least squares on log times, per side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.models.cost_model.combine import device_total, host_total
from torch_pim.models.cost_model.constants import FROM_SPECS, CostConstants
from torch_pim.models.cost_model.estimate import SideTimes
from torch_pim.models.cost_model.model import CostModel

LOSS_SCALE = 0.2
"""Errors of log time beyond this (about 20 %) count linearly and not quadratically, so that outliers pull less."""
PULL = 0.1
"""Weight of log(constant) as one more residual: a component that no label shows stays near its specification."""
LARGEST_FACTOR = 32.0
"""Constants are kept between 1/32 and 32."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HostLabel:
    """Isolated time of one concrete nest on one host, in nanoseconds."""

    nest: LoopNest
    host: HostSpec
    time_ns: float


@dataclass(frozen=True, slots=True)
class DeviceLabel:
    """Isolated time of one concrete nest on one device, launch included, in nanoseconds."""

    nest: LoopNest
    device: DeviceSpec
    time_ns: float


def fit_constants(
    host_labels: Sequence[HostLabel],
    device_labels: Sequence[DeviceLabel],
    profile_weight: float = FROM_SPECS.profile_weight,
) -> CostConstants:
    """Four factors per side that bring the closed forms nearest to the labels; the same labels give the same factors.

    Raises ValueError for a side without labels or a label that is not a positive time.
    """
    base = CostModel()
    host_parts = [base.host_times(label.nest, label.host) for label in host_labels]
    device_parts = [base.device_times(label.nest, label.device) for label in device_labels]
    misses = np.array([float(label.device.outstanding_misses) for label in device_labels])
    host = _fit_side("host", host_parts, [label.time_ns for label in host_labels], host_total)
    device = _fit_side(
        "device",
        device_parts,
        [label.time_ns for label in device_labels],
        lambda compute, latency, bandwidth, overhead: device_total(compute, latency, bandwidth, overhead, misses),
    )
    return CostConstants(*host, *device, profile_weight)


def _fit_side(
    side: str,
    parts: Sequence[SideTimes],
    times_ns: Sequence[float],
    total: Callable[[Floats, Floats, Floats, Floats], Floats],
) -> tuple[float, float, float, float]:
    # Imported here because only training fits.
    from scipy.optimize import least_squares

    if not parts:
        raise ValueError(f"no {side} labels: expected at least one to fit the {side} constants")
    for time_ns in times_ns:
        if not (math.isfinite(time_ns) and time_ns > 0):
            raise ValueError(f"a {side} label has the time {time_ns} ns: expected a positive number")
    components = np.array([(p.compute_ns, p.latency_ns, p.bandwidth_ns, p.overhead_ns) for p in parts]).T
    target = np.log(np.array(times_ns))

    def residuals(logs: Floats) -> Floats:
        factors = np.exp(logs)
        compute, latency, bandwidth, overhead = components * factors[:, None]
        estimated = total(compute, latency, bandwidth, overhead)
        return np.asarray(np.log(np.maximum(estimated, 1e-9)) - target)

    def robust(logs: Floats) -> Floats:
        """Residuals whose squares sum to the soft-L1 loss; the pull on the constants stays quadratic."""
        errors = residuals(logs) / LOSS_SCALE
        soft = LOSS_SCALE * np.sign(errors) * np.sqrt(2.0 * (np.sqrt(1.0 + errors**2) - 1.0))
        return np.concatenate([soft, PULL * logs])

    bound = math.log(LARGEST_FACTOR)
    found = least_squares(robust, np.zeros(4), bounds=(-bound, bound), method="trf", x_scale=1.0)
    # Rounded, so that the last bits of the optimiser do not reach the bundle.
    a, b, c, d = (float(f"{math.exp(log):.6g}") for log in found.x)
    return a, b, c, d
