"""What a policy is asked (PlacementProblem) and what it answers (Placement)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.profile import HostProfile

Side = Literal["host", "pim"]
BufferRole = Literal["weight", "input", "temporary", "output"]
Stage = Literal["forced", "work_filter", "boundedness", "residency", "fallback", "fixed"]


@dataclass(frozen=True, slots=True)
class BufferVersion:
    """One value of one buffer: a new version begins at each nest that stores to the buffer."""

    identity: int
    nbytes: int
    role: BufferRole
    producer: int
    """Index of the call that stores it, -1 for weights and inputs."""
    consumers: tuple[int, ...]
    """Indices of the calls that load it, ascending; a partial overwrite counts as a load."""
    leaves: bool = False
    """The version is a result of the program: it must end on the host."""


@dataclass(frozen=True, slots=True)
class NestCall:
    """One execution of a unique nest in program order."""

    nest: int
    """Index into PlacementProblem.nests."""
    site: str
    """Where it comes from, e.g. a module path or an FX node name."""


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """All that a policy may know: concrete nests, their order, data flow, profiles, machines. No label, no emulator."""

    nests: tuple[LoopNest, ...]
    calls: tuple[NestCall, ...]
    buffers: tuple[BufferVersion, ...]
    profiles: tuple[HostProfile | None, ...]
    """One per unique nest; None where there is no profile of this host."""
    host: HostSpec
    device: DeviceSpec
    objective: Literal["time"] = "time"

    def __post_init__(self) -> None:
        if len(self.profiles) != len(self.nests):
            raise ValueError(
                f"{len(self.profiles)} profiles for {len(self.nests)} nests: expected one (or None) per nest"
            )


@dataclass(frozen=True, slots=True)
class Decision:
    """Where one call runs and why."""

    side: Side
    stage: Stage
    policy: str
    """Name of the policy that decided; in a chain, the one that did not abstain."""
    reason: str
    score: float | None = None
    """Calibrated probability that PIM is faster; None when no model was asked."""


@dataclass(frozen=True, slots=True)
class Placement:
    """One decision per call, in program order."""

    decisions: tuple[Decision, ...]
    policy: str
    fingerprint: str

    def sides(self) -> tuple[Side, ...]:
        return tuple(d.side for d in self.decisions)
