"""Instruction counts of each loop body after blocking: what the core models of both sides charge."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from torch_pim.features.analysis.contractions import contractions
from torch_pim.features.nest import Access, LoopNest
from torch_pim.models.cost_model.blocking import executions_after_blocking


@dataclass(frozen=True, slots=True)
class Body:
    """One loop body; counts are per execution of the whole nest, before they are divided by SIMD lanes."""

    loop: int
    accesses: tuple[Access, ...]
    iterations: float
    loads: float
    stores: float
    operations: Mapping[str, float]
    """By kind; fused multiply-adds are taken out of `multiply` and `add` and counted as `fused`."""
    irregular: bool
    """Addresses are loaded or not linear, so that they cannot be strength-reduced."""
    contraction: bool


@functools.lru_cache(maxsize=1 << 14)
def bodies(nest: LoopNest) -> tuple[Body, ...]:
    """Bodies of all loops that do anything, by loop index."""
    accesses: dict[int, list[Access]] = defaultdict(list)
    counts: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for access in nest.accesses:
        accesses[access.loop].append(access)
    for operation in nest.operations:
        counts[operation.loop][operation.kind] += operation.count * nest.executions(operation.loop)
    blocked = {contraction.result.loop for contraction in contractions(nest)}
    found = []
    for loop in sorted({*accesses, *counts}):
        operations = counts[loop]
        fused = min(operations.get("multiply", 0.0), operations.get("add", 0.0))
        kinds = {**operations, "fused": fused}
        for kind in ("multiply", "add"):
            kinds[kind] = operations.get(kind, 0.0) - fused
        here = accesses[loop]
        found.append(
            Body(
                loop=loop,
                accesses=tuple(here),
                iterations=float(nest.executions(loop)),
                loads=sum(executions_after_blocking(nest, a) for a in here if a.kind == "load"),
                stores=sum(executions_after_blocking(nest, a) for a in here if a.kind == "store"),
                operations=kinds,
                irregular=any(a.indirect or not a.affine for a in here),
                contraction=loop in blocked,
            )
        )
    return tuple(found)
