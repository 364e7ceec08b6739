"""Results of a comparison. All times are modelled, by `plan_time` on the emulator's isolated times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch_pim.compiler_hook.protocols import NestTiming
from torch_pim.experiments.lowered_model import LoweredModel
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import NestKind
from torch_pim.models.plan_time import PlanTime
from torch_pim.models.transitions import Flush

ORACLE = "oracle"
"""The faster isolated side of every nest; looks at emulated times, so the compiler cannot select it."""
OPTIMUM = "optimum"
"""The fastest whole plan, likewise."""
HOST_ONLY = "host"
"""The policy that speedups refer to."""


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """One policy under one flush model."""

    plan: PlanTime
    speedup: float
    """Time of the host-only plan / time of this one."""
    nest_regret: float
    """Sum of isolated times / sum of the smaller ones - 1, over all calls."""
    plan_regret: float
    """Plan time / plan time of the optimum - 1."""


@dataclass(frozen=True, slots=True)
class NestResult:
    """One unique nest: its emulated times and where each policy sends its calls."""

    name: str
    kind: NestKind
    aten_operators: tuple[str, ...]
    code_hash: str
    feature_hash: str
    calls: int
    partitionable: bool
    refused: str | None
    """Why it cannot run on the device; None if it can."""
    host: NestTiming
    device: NestTiming
    """Of a refused nest, what its code would take if the device could run it."""
    pim_calls: Mapping[str, int]
    """Policy -> how many of the calls it places on PIM."""


@dataclass(frozen=True, slots=True)
class PairComparison:
    """All policies on one host and device, under one setting of profiles."""

    host: HostSpec
    device: DeviceSpec
    profile: str
    """`simulated`, `none`, or the file of the profiles that policies were shown."""
    profiled_nests: int
    flush: Flush
    """The flush model that is shown first."""
    results: Mapping[Flush, Mapping[str, PolicyResult]]
    """Flush model -> policy -> result; policies in the order asked for, then oracle and optimum."""
    nests: tuple[NestResult, ...]
    fingerprints: Mapping[str, str]
    """Policy -> fingerprint of its placement; oracle and optimum have none."""

    @property
    def policies(self) -> Mapping[str, PolicyResult]:
        """Results under the flush model that is shown first."""
        return self.results[self.flush]

    @property
    def counts(self) -> str:
        """E.g. `583 nests and 354 copies, 25 of them unique`."""
        calls = sum(nest.calls for nest in self.nests)
        copies = sum(nest.calls for nest in self.nests if nest.kind == "copy")
        return f"{calls - copies} nests and {copies} copies, {len(self.nests)} of them unique"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One model under several policies on one or more pairs of machines."""

    model: LoweredModel
    pairs: tuple[PairComparison, ...]
    emulator_version: str
