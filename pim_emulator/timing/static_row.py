"""What the times need to know about one nest beside its measurement: instructions, vector lanes, contractions."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache

from torch_pim.features.analysis.contractions import contractions
from torch_pim.features.analysis.facts import nest_facts
from torch_pim.features.analysis.footprint import buffer_extents, nest_footprint
from torch_pim.features.analysis.reductions import is_accumulator
from torch_pim.features.analysis.strides import stride_class
from torch_pim.features.analysis.work import FLOAT_TYPES, access_count, operation_count, trip
from torch_pim.features.nest import ELEMENT_BYTES, NO_LOOP, Access, LoopNest

CORE_COUNTS = tuple(2**i for i in range(9))
"""Numbers of cores for which the footprint of one core's part is worked out."""


@dataclass(frozen=True, slots=True)
class ContractionRow:
    """One contraction: result[b, m, n] += left[b, m, k] * right[b, n, k]."""

    batch: float
    m: float
    n: float
    macs: float
    element_bytes: float
    left_lines: float
    right_lines: float


@dataclass(frozen=True, slots=True)
class StaticRow:
    """Counts are per execution of the whole nest, before vectorisation. Contractions' multiply-adds are apart."""

    iterations: float
    """Length of the range that is split over cores; 1 for a nest that is not partitionable."""
    loop_iterations: float
    """Iterations of all innermost loops but those of contractions, whose tiles spread the overhead."""
    loads: float
    """Loads that are no operand of a contraction. Accumulators and invariant values stay in registers while their
    innermost loop runs."""
    stores: float
    float_adds: float
    float_multiplies: float
    divides: float
    """Divisions and square roots."""
    transcendentals: float
    integer_adds: float
    """Integer additions, comparisons, selections, conversions, logic: one simple instruction each."""
    integer_multiplies: float
    integer_divides: float
    addresses: float
    """Address arithmetic that cannot be reduced to increments: of addresses that are not linear or loaded."""
    branches: float
    vector_share: float
    """Share of the work that runs on SIMD lanes, loops interchanged or operands packed if need be."""
    shuffled_share: float
    """Share of the work that runs on lanes after register transposes: accesses are contiguous, but along different
    loops."""
    wide_share: float
    """Share of the work on 8-byte types, of which half as many fit a vector."""
    strided_share: float
    """Share of the accesses that walk with a stride along their innermost loop."""
    stored_lines: float
    """Distinct lines of stored buffers."""
    contractions: tuple[ContractionRow, ...]


@lru_cache(maxsize=8192)
def static_row(nest: LoopNest) -> StaticRow:
    """Row of a concrete nest."""
    facts = nest_facts(nest)
    found = contractions(nest)
    macs = sum(c.macs for c in found)
    counts: dict[str, float] = defaultdict(float)
    total = wide = 0.0
    for operation in nest.operations:
        count = operation_count(nest, operation)
        counts[_instruction(operation.kind, operation.element_type in FLOAT_TYPES)] += count
        if operation.kind not in ("address", "branch"):
            total += count
            wide += count * (ELEMENT_BYTES[operation.element_type] > 4)
    operands = [access for c in found for access in (c.left, c.right)]
    irregular = 0.0
    for access in nest.accesses:
        count = access_count(nest, access)
        total += count
        wide += count * (ELEMENT_BYTES[access.element_type] > 4)
        irregular += count * (access.indirect or not access.affine)
        if access in operands:
            continue
        if _in_register(nest, access):
            count /= max(1, trip(nest, access.loop))
        counts[f"{access.kind}s"] += count
    contracted = 2.0 * macs / max(1.0, 2.0 * macs + counts["loads"])
    vector_share = max(facts.vectorisation.interchanged, contracted)
    return StaticRow(
        iterations=float(nest.parallel_trip if nest.partitionable else 1),
        loop_iterations=max(0.0, facts.iterations - macs),
        loads=counts["loads"],
        stores=counts["stores"],
        float_adds=max(0.0, counts["float_adds"] - macs),
        float_multiplies=max(0.0, counts["float_multiplies"] - macs),
        divides=counts["divides"],
        transcendentals=counts["transcendentals"],
        integer_adds=counts["integer_adds"],
        integer_multiplies=counts["integer_multiplies"],
        integer_divides=counts["integer_divides"],
        addresses=counts["addresses"] * irregular / max(1.0, facts.accesses),
        branches=counts["branches"],
        vector_share=vector_share,
        shuffled_share=max(0.0, min(1.0, contiguous_share(nest)) - vector_share),
        wide_share=wide / total if total else 0.0,
        strided_share=facts.stride_shares["strided"],
        stored_lines=facts.footprint.stored_lines,
        contractions=tuple(
            ContractionRow(
                batch=float(c.batch),
                m=float(c.m),
                n=float(c.n),
                macs=c.macs,
                element_bytes=float(max(ELEMENT_BYTES[c.left.element_type], ELEMENT_BYTES[c.right.element_type])),
                left_lines=_lines(nest, c.left),
                right_lines=_lines(nest, c.right),
            )
            for c in found
        ),
    )


def contiguous_share(nest: LoopNest) -> float:
    """Share of executed accesses in loop bodies where each access is contiguous along some loop, or never moves."""
    bodies: dict[int, list[Access]] = defaultdict(list)
    for access in nest.accesses:
        bodies[access.loop].append(access)
    total = share = 0.0
    for accesses in bodies.values():
        weight = sum(access_count(nest, access) for access in accesses)
        total += weight
        share += weight * all(_contiguous(nest, access) for access in accesses)
    return share / total if total else 0.0


def _contiguous(nest: LoopNest, access: Access) -> bool:
    classes = {stride_class(access, loop) for loop in nest.enclosing(access.loop)}
    return access.probability == 1.0 and ("unit" in classes or classes == {"invariant"})


def core_lines(nest: LoopNest, cores: int) -> float:
    """Distinct lines that one core touches when the parallel range is split into `cores` blocks."""
    if cores == 1 or not nest.partitionable:
        return nest_footprint(nest).lines
    loops = list(nest.loops)
    remaining = cores
    for index in range(nest.parallel_rank):
        count = trip(nest, index)
        split = max(1, min(remaining, count))
        loops[index] = replace(loops[index], trip=math.ceil(count / split))
        remaining = math.ceil(remaining / split)
    return nest_footprint(replace(nest, loops=tuple(loops))).lines


def _in_register(nest: LoopNest, access: Access) -> bool:
    """True for what tuned code loads or stores once per execution of the innermost loop instead of each iteration."""
    if access.loop == NO_LOOP:
        return False
    if access.kind == "store":
        return is_accumulator(nest, access)
    return stride_class(access, access.loop) == "invariant"


def _lines(nest: LoopNest, access: Access) -> float:
    path = frozenset(nest.enclosing(access.loop))
    return buffer_extents(nest, [access], path)[access.buffer].lines


def _instruction(kind: str, is_float: bool) -> str:
    """Name of the StaticRow field that an operation counts for."""
    match kind:
        case "add":
            return "float_adds" if is_float else "integer_adds"
        case "multiply":
            return "float_multiplies" if is_float else "integer_multiplies"
        case "divide":
            return "divides" if is_float else "integer_divides"
        case "square_root":
            return "divides"
        case "transcendental":
            return "transcendentals"
        case "address":
            return "addresses"
        case "branch":
            return "branches"
        case _:
            return "integer_adds"
