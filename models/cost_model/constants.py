"""Multiplicative constants of the cost model: all 1 from the specifications, or fitted on labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from torch_pim.models.errors import UnsupportedFormat, did_you_mean


@dataclass(frozen=True, slots=True)
class CostConstants:
    """Factors on the components of each side, as plain numbers that a bundle carries."""

    host_compute: float = 1.0
    host_latency: float = 1.0
    host_bandwidth: float = 1.0
    host_overhead: float = 1.0
    device_compute: float = 1.0
    device_latency: float = 1.0
    device_bandwidth: float = 1.0
    device_overhead: float = 1.0
    profile_weight: float = 0.5
    """Weight of log(profiled wall time) against log(own host estimate), 0 to 1.

    Not 1, because errors that both sides share (a miscounted operation) cancel in the ratio of two own estimates,
    and a profile on the host side alone removes that; not 0, because the profile knows what the closed form does not.
    """

    def __post_init__(self) -> None:
        """Raises ValueError for a factor that is not a positive number, or a weight outside [0, 1]."""
        for name, value in self.to_json().items():
            if name == "profile_weight":
                if not 0.0 <= value <= 1.0:
                    raise ValueError(f"profile_weight is {value}: expected 0 to 1")
            elif not (math.isfinite(value) and value > 0):
                raise ValueError(f"cost constant {name} is {value}: expected a positive number")

    @property
    def host(self) -> tuple[float, float, float, float]:
        """Factors on compute, latency, bandwidth and overhead."""
        return self.host_compute, self.host_latency, self.host_bandwidth, self.host_overhead

    @property
    def device(self) -> tuple[float, float, float, float]:
        """Factors on compute, latency, bandwidth and overhead."""
        return self.device_compute, self.device_latency, self.device_bandwidth, self.device_overhead

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> CostConstants:
        """Inverse of `to_json`; raises UnsupportedFormat for a missing, unknown or impossible constant."""
        names = [f.name for f in fields(cls)]
        for key in table:
            if key not in names:
                raise UnsupportedFormat(f"unknown cost constant {key!r}.{did_you_mean(key, names)}")
        for name in names:
            if name not in table:
                raise UnsupportedFormat(f"cost constant {name!r} is missing: expected {', '.join(names)}")
        try:
            return cls(**{name: float(table[name]) for name in names})
        except (TypeError, ValueError) as error:
            raise UnsupportedFormat(f"cost constants: {error}") from error


FROM_SPECS = CostConstants()
"""Nothing fitted: the specifications and the closed forms alone."""
