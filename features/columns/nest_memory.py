"""Features of what a nest does to memory: accesses, footprint, strides, reuse, and a static miss curve."""

from __future__ import annotations

from torch_pim.features.analysis.facts import FITTED_CACHE_BYTES, NestFacts
from torch_pim.features.analysis.strides import STRIDE_CLASSES, StrideClass
from torch_pim.features.columns.feature import Feature, feature, log2_1p, ratio
from torch_pim.features.nest import ELEMENT_BYTES

_STRIDE_TEXT: dict[StrideClass, str] = {
    "unit": "to the next element",
    "invariant": "to the same element",
    "strided": "by any other step",
    "indirect": "to where loaded data points",
}


def _stride_share(name: StrideClass) -> Feature[NestFacts]:
    return feature(
        f"stride_{name}_share",
        "share",
        f"Accesses that the innermost loop around them moves {_STRIDE_TEXT[name]}.",
        lambda f: f.stride_shares[name],
    )


def _fitted_misses(position: int) -> Feature[NestFacts]:
    size = FITTED_CACHE_BYTES[position] // 1024
    return feature(
        f"fitted_misses_{size}k",
        "log2(1+permille)",
        f"Misses per thousand accesses in a cold cache of {size} KiB, by the level-fit model.",
        lambda f: log2_1p(1000.0 * f.fitted_miss_ratios[position]),
    )


def _line_use(f: NestFacts) -> float:
    return f.footprint.line_utilisation


MEMORY_FEATURES: tuple[Feature[NestFacts], ...] = (
    feature("log_loads", "log2(1+count)", "Executed loads.", lambda f: log2_1p(f.loads)),
    feature("log_stores", "log2(1+count)", "Executed stores.", lambda f: log2_1p(f.stores)),
    feature(
        "loads_per_iteration",
        "per iteration",
        "Loads per innermost iteration.",
        lambda f: ratio(f.loads, f.iterations),
    ),
    feature(
        "stores_per_iteration",
        "per iteration",
        "Stores per innermost iteration.",
        lambda f: ratio(f.stores, f.iterations),
    ),
    feature(
        "bytes_per_access",
        "bytes",
        "Mean size of an access.",
        lambda f: ratio(f.accessed_bytes, f.accesses),
    ),
    feature(
        "largest_element_bytes",
        "bytes",
        "Size of the largest element type that is accessed.",
        lambda f: max((ELEMENT_BYTES[a.element_type] for a in f.nest.accesses), default=0),
    ),
    feature(
        "log_footprint_bytes",
        "log2(1+bytes)",
        "Distinct bytes that the nest touches.",
        lambda f: log2_1p(f.footprint.touched_bytes),
    ),
    feature(
        "log_stored_bytes",
        "log2(1+bytes)",
        "Distinct bytes that the nest stores.",
        lambda f: log2_1p(f.footprint.stored_bytes),
    ),
    feature(
        "stored_share",
        "share",
        "Stored bytes among the touched ones.",
        lambda f: ratio(f.footprint.stored_bytes, f.footprint.touched_bytes),
    ),
    feature(
        "largest_buffer_share",
        "share",
        "Touched bytes that lie in the buffer of which most is touched.",
        lambda f: ratio(f.footprint.largest_buffer_bytes, f.footprint.touched_bytes),
    ),
    feature("buffer_count", "count", "Buffers that are accessed.", lambda f: len({a.buffer for a in f.nest.accesses})),
    feature(
        "log_bytes_per_parallel",
        "log2(1+bytes)",
        "Footprint over parallel iterations.",
        lambda f: log2_1p(ratio(f.footprint.touched_bytes, f.parallel_trip)),
    ),
    feature(
        "log_flops_per_byte",
        "log2(1+flops/byte)",
        "Arithmetic intensity: floating-point operations over the footprint.",
        lambda f: log2_1p(ratio(f.flops, f.footprint.touched_bytes)),
    ),
    feature(
        "log_reuse",
        "log2(1+ratio)",
        "Accessed bytes over touched bytes: how often each byte is used.",
        lambda f: log2_1p(ratio(f.accessed_bytes, f.footprint.touched_bytes)),
    ),
    feature("line_utilisation", "share", "Touched bytes over the bytes of the touched lines.", _line_use),
    *(_stride_share(name) for name in STRIDE_CLASSES),
    feature(
        "nonlinear_share",
        "share",
        "Accesses whose address is no linear function of the loop counters.",
        lambda f: f.nonlinear_share,
    ),
    feature("guarded_share", "share", "Accesses that some iterations skip.", lambda f: f.guarded_share),
    *(_fitted_misses(position) for position in range(len(FITTED_CACHE_BYTES))),
)
