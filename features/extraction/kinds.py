"""Copies and fills apart from nests that compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_pim.features.nest import NO_LOOP, Access, NestKind, Operation

_MOVING = ("address", "branch")
"""Kinds of operations that a copy or a fill may hold inside its loops."""


def nest_kind(
    accesses: Sequence[Access], operations: Sequence[Operation], stores_invariants: Callable[[], bool]
) -> NestKind:
    """`copy` where loaded values are stored as they are (layout changes included), `fill` where nothing is loaded and
    only loop-invariant values are stored; all else is `compute`, also gathers and scatters, whose movement is data.
    """
    computes = any(op.loop != NO_LOOP and op.kind not in _MOVING for op in operations)
    if computes or any(access.indirect for access in accesses):
        return "compute"
    loads = any(access.kind == "load" for access in accesses)
    stores = any(access.kind == "store" for access in accesses)
    if loads:
        return "copy" if stores else "compute"
    return "fill" if stores and stores_invariants() else "compute"
