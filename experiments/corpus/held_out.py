"""Keeps the nests of the evaluated language models out of the training corpus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch_pim.features.extent import concrete
from torch_pim.features.nest import LoopNest


def iteration_extents(nest: LoopNest) -> tuple[int, ...]:
    """The trip counts above one of all loops, sorted: the shape of a nest whatever its loop order and operations."""
    return tuple(sorted(trip for loop in nest.loops if (trip := concrete(loop.trip)) > 1))


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Nests that training must not see, nor anything of their shape."""

    feature_hashes: frozenset[str]
    extents: frozenset[tuple[int, ...]]

    @staticmethod
    def of(nests: Iterable[LoopNest]) -> HeldOut:
        """From the concrete nests of the evaluated models."""
        listed = tuple(nests)
        return HeldOut(
            frozenset(nest.feature_hash for nest in listed), frozenset(iteration_extents(nest) for nest in listed)
        )

    def reason(self, nest: LoopNest) -> str | None:
        """Why the concrete nest is held out, None when training may use it."""
        if nest.feature_hash in self.feature_hashes:
            return "same nest as in a held-out model"
        extents = iteration_extents(nest)
        if extents in self.extents:
            return f"same iteration extents as in a held-out model: {'x'.join(map(str, extents)) or 'one iteration'}"
        return None
