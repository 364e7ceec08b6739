"""Features of computation patterns: reductions, contractions, and fitness for SIMD lanes."""

from __future__ import annotations

from collections.abc import Callable

from torch_pim.features.analysis.contractions import Contraction
from torch_pim.features.analysis.facts import NestFacts
from torch_pim.features.columns.feature import Feature, feature, log2_1p, ratio


def _of_contraction(
    name: str, unit: str, description: str, value: Callable[[Contraction], float]
) -> Feature[NestFacts]:
    """A feature of the contraction with the most multiply-adds, 0 without one."""
    return feature(name, unit, description, lambda f: 0.0 if f.contraction is None else value(f.contraction))


PATTERN_FEATURES: tuple[Feature[NestFacts], ...] = (
    feature(
        "accumulating_share",
        "share",
        "Stores that add to a place which their loop does not move.",
        lambda f: ratio(sum(r.executions for r in f.reductions), f.stores),
    ),
    feature(
        "log_reduction_length",
        "log2(1+count)",
        "Values that are combined into one result, in the longest reduction.",
        lambda f: log2_1p(max((r.length for r in f.reductions), default=0)),
    ),
    feature(
        "contraction_share",
        "share",
        "Innermost iterations that are multiply-adds of the main contraction.",
        lambda f: 0.0 if f.contraction is None else ratio(f.contraction.macs, f.iterations),
    ),
    _of_contraction(
        "contraction_is_vector", "flag", "One operand is used only once (matrix times vector).", lambda c: c.is_vector
    ),
    _of_contraction("log_contraction_batch", "log2(1+count)", "Independent products.", lambda c: log2_1p(c.batch)),
    _of_contraction(
        "log_contraction_large", "log2(1+count)", "Larger of the two reuses.", lambda c: log2_1p(max(c.m, c.n))
    ),
    _of_contraction(
        "log_contraction_small", "log2(1+count)", "Smaller of the two reuses.", lambda c: log2_1p(min(c.m, c.n))
    ),
    _of_contraction("log_contraction_depth", "log2(1+count)", "Products per result.", lambda c: log2_1p(c.k)),
    feature(
        "vectorised_share",
        "share",
        "Accesses in bodies that the loop around them can run on SIMD lanes.",
        lambda f: f.vectorisation.as_emitted,
    ),
    feature(
        "interchanged_vectorised_share",
        "share",
        "Accesses in bodies that some enclosing loop can run on SIMD lanes.",
        lambda f: f.vectorisation.interchanged,
    ),
)
