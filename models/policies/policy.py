"""What a policy is, and what it is made from."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from torch_pim.features.placement import Placement, PlacementProblem
from torch_pim.models.learned.bundle import Bundle

OnModelError = Literal["fallback", "error"]


@runtime_checkable
class Policy(Protocol):
    """Chooses a side for every call of a plan; the same problem always gets the same placement."""

    @property
    def name(self) -> str: ...

    def place(self, problem: PlacementProblem) -> Placement:
        """One decision per call, in program order. Raises PlacementError for a problem with symbolic sizes."""
        ...

    def fingerprint(self, problem: PlacementProblem) -> str:
        """sha256 of all that can change a placement besides the nests themselves; part of every compile-cache key."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """What `create_policy` was asked for; every policy factory takes one."""

    name: str
    bundle: Bundle | str | os.PathLike[str] | None
    """A loaded bundle, the folder of one, or None for the policy's default."""
    seed: int
    on_model_error: OnModelError


PolicyFactory = Callable[[PolicyRequest], Policy]
