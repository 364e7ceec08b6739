"""All that the feature columns need to know about one concrete nest, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from torch_pim.features.analysis import work
from torch_pim.features.analysis.contractions import Contraction, contractions
from torch_pim.features.analysis.footprint import Footprint, nest_footprint
from torch_pim.features.analysis.misses import fitted_misses
from torch_pim.features.analysis.reductions import Reduction, reductions
from torch_pim.features.analysis.strides import StrideClass, stride_shares
from torch_pim.features.analysis.vectorisation import Vectorisation, vectorisation
from torch_pim.features.nest import OPERATION_KINDS, Access, LoopNest

FITTED_CACHE_BYTES = (32 * 1024, 256 * 1024, 2 * 1024 * 1024, 16 * 1024 * 1024)
"""Sizes at which the static miss curve is taken."""


@dataclass(frozen=True, slots=True)
class NestFacts:
    """Counts are per execution of the whole nest."""

    nest: LoopNest
    parallel_trip: int
    iterations: int
    """Iterations of all innermost loops."""
    inner_trip: int
    """Trip count of the innermost loop with the most iterations; 1 without loops."""
    depth: int
    operations: Mapping[str, float]
    """Executed operations by kind, every kind present."""
    flops: float
    integer_share: float
    """Share of integer operations among all operations on data; 0 without any."""
    loads: float
    stores: float
    accessed_bytes: float
    footprint: Footprint
    stride_shares: Mapping[StrideClass, float]
    nonlinear_share: float
    """Share of accesses whose address is no linear function of the loop counters."""
    guarded_share: float
    """Share of accesses that a branch guards."""
    reductions: tuple[Reduction, ...]
    contraction: Contraction | None
    """The one with the most multiply-adds."""
    vectorisation: Vectorisation
    fitted_miss_ratios: tuple[float, ...]
    """Lines missed per access in caches of FITTED_CACHE_BYTES."""

    @property
    def accesses(self) -> float:
        return self.loads + self.stores


@lru_cache(maxsize=2048)
def nest_facts(nest: LoopNest) -> NestFacts:
    """Facts of a concrete nest; kept, because every pair of machines asks for them again.

    Raises UnboundSymbolError for a nest with symbolic sizes.
    """
    hottest = work.hottest_loop(nest)
    integers, floats = (work.data_operations(nest, floating=floating) for floating in (False, True))
    accesses = sum(work.access_count(nest, a) for a in nest.accesses)

    def share_of(chosen: list[Access]) -> float:
        return sum(work.access_count(nest, a) for a in chosen) / accesses if accesses else 0.0

    return NestFacts(
        nest=nest,
        parallel_trip=nest.parallel_trip,
        iterations=work.iterations(nest),
        inner_trip=1 if hottest is None else work.trip(nest, hottest),
        depth=max((len(nest.enclosing(loop)) for loop in range(len(nest.loops))), default=0),
        operations={kind: work.operations_of(nest, kind) for kind in OPERATION_KINDS},
        flops=work.flops(nest),
        integer_share=integers / (integers + floats) if integers else 0.0,
        loads=work.accesses_of(nest, "load"),
        stores=work.accesses_of(nest, "store"),
        accessed_bytes=work.accessed_bytes(nest),
        footprint=nest_footprint(nest),
        stride_shares=stride_shares(nest),
        nonlinear_share=share_of([a for a in nest.accesses if not a.affine]),
        guarded_share=share_of([a for a in nest.accesses if a.probability < 1.0]),
        reductions=reductions(nest),
        contraction=max(contractions(nest), key=lambda c: c.macs, default=None),
        vectorisation=vectorisation(nest),
        fitted_miss_ratios=tuple(
            fitted_misses(nest, size).lines / accesses if accesses else 0.0 for size in FITTED_CACHE_BYTES
        ),
    )
