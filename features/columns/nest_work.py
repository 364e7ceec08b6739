"""Features of a nest's loops and operations. Counts are logarithms or per iteration, so that all sizes compare."""

from __future__ import annotations

from torch_pim.features.analysis.facts import NestFacts
from torch_pim.features.columns.feature import Feature, feature, log2_1p, ratio
from torch_pim.features.nest import OPERATION_KINDS


def _per_iteration(kind: str) -> Feature[NestFacts]:
    return feature(
        f"{kind}_per_iteration",
        "per iteration",
        f"Operations of kind `{kind}` per innermost iteration.",
        lambda f: ratio(f.operations[kind], f.iterations),
    )


WORK_FEATURES: tuple[Feature[NestFacts], ...] = (
    feature(
        "log_parallel_trip",
        "log2(1+count)",
        "Iterations of the parallel range that is split over cores.",
        lambda f: log2_1p(f.parallel_trip),
    ),
    feature("log_iterations", "log2(1+count)", "Iterations of all innermost loops.", lambda f: log2_1p(f.iterations)),
    feature(
        "log_iterations_per_parallel",
        "log2(1+count)",
        "Innermost iterations in one iteration of the parallel range.",
        lambda f: log2_1p(ratio(f.iterations, f.parallel_trip)),
    ),
    feature(
        "log_inner_trip",
        "log2(1+count)",
        "Trip count of the innermost loop that runs most.",
        lambda f: log2_1p(f.inner_trip),
    ),
    feature("loop_depth", "count", "Loops around the deepest statement.", lambda f: f.depth),
    feature("loop_count", "count", "Loops of the nest.", lambda f: len(f.nest.loops)),
    feature("parallel_rank", "count", "Dimensions of the parallel range.", lambda f: f.nest.parallel_rank),
    feature("is_partitionable", "flag", "The nest can be split over cores.", lambda f: f.nest.partitionable),
    feature("is_copy", "flag", "The nest only copies.", lambda f: f.nest.kind == "copy"),
    feature("is_fill", "flag", "The nest only stores values that no loop changes.", lambda f: f.nest.kind == "fill"),
    feature(
        "has_estimated_trip",
        "flag",
        "The trip count of some loop is a stand-in.",
        lambda f: any(loop.estimated for loop in f.nest.loops),
    ),
    *(_per_iteration(kind) for kind in OPERATION_KINDS),
    feature("log_flops", "log2(1+count)", "Floating-point operations.", lambda f: log2_1p(f.flops)),
    feature(
        "integer_share",
        "share",
        "Integer operations among all operations on data.",
        lambda f: f.integer_share,
    ),
)
