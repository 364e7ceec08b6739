"""Measures one nest: chooses the part to trace, sends it through the caches, and scales it to the whole nest.

A nest whose accesses fit the budget is traced completely. Of any other one long chunk in the middle of its parallel
range is traced: its first half fills the caches, the second half is counted. Several short chunks err more, because
each starts cold. Misses of caches beyond 1 MiB are never extrapolated from a chunk, which is too short to show their
reuse: they come from the static level-fit model, with the repeated misses of the chunk as lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.features.analysis.facts import nest_facts
from torch_pim.features.analysis.misses import Misses, fitted_misses
from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES, FILTER, PRIVATE_BYTES, SHARED_BYTES, VAULT_COUNTS
from torch_pim.pim_emulator.caches.simulator import CacheCounts, CacheSimulator, line_limit
from torch_pim.pim_emulator.measurement.record import NestMeasurement
from torch_pim.pim_emulator.tracing.batch import Trace, TracedNest

EXECUTION_LIMIT = 2_000_000_000
"""Accesses of one iteration above which it is not run at all (it would take seconds): such a nest is only modelled."""

_PRIVATE = len(PRIVATE_BYTES)
_L2 = PRIVATE_BYTES.index(256 * 1024)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Counts of a trace, and how far its two halves differ."""

    counts: CacheCounts
    error_estimate: float


def measure(nest: ConcreteNest, traced: TracedNest, trace_budget: int, simulator: CacheSimulator) -> NestMeasurement:
    """Traces at most about `trace_budget` accesses of the nest (whole iterations) and scales them to all of it.

    The simulator is reset and used.
    """
    accesses = nest_facts(nest.loop_nest).accesses
    iterations = traced.iterations
    if accesses <= trace_budget:
        trace = traced.trace(0, iterations)
        if not trace.truncated:
            return _complete(nest, trace, simulator)
    if iterations == 0 or accesses / iterations > EXECUTION_LIMIT:
        return modelled(nest)
    middle = iterations // 2
    chunk = trace_budget // max(1, traced.count(middle, middle + 1))
    chunk = min(iterations, max(1, chunk))
    low = (iterations - chunk) // 2
    trace = traced.trace(low, low + chunk)
    return _sampled(nest, trace, chunk / iterations, simulator)


def modelled(nest: ConcreteNest) -> NestMeasurement:
    """What the static model says of a nest that cannot be run: misses at all sizes from the level-fit model."""
    facts = nest_facts(nest.loop_nest)
    misses = [fitted_misses(nest.loop_nest, size) for size in CACHE_BYTES]
    return NestMeasurement(
        code_hash=nest.function.code_hash,
        feature_hash=nest.loop_nest.feature_hash,
        loads=facts.loads,
        stores=facts.stores,
        load_misses=tuple(m.lines - m.stored_lines for m in misses),
        store_misses=tuple(m.stored_lines for m in misses),
        writebacks=tuple(m.stored_lines for m in misses),
        footprint_lines=facts.footprint.lines,
        sequential_share=facts.stride_shares["unit"],
        row_hit_share=0.75 * facts.stride_shares["unit"],
        vault_imbalance=(1.0,) * len(VAULT_COUNTS),
        footprint_imbalance=(1.0,) * len(VAULT_COUNTS),
        recorded_accesses=0,
        traced_share=0.0,
        error_estimate=math.nan,
    )


def _complete(nest: ConcreteNest, trace: Trace, simulator: CacheSimulator) -> NestMeasurement:
    simulator.reset(line_limit(trace.entries))
    simulator.count(trace.entries)
    counts = simulator.counts()
    return _record(
        nest,
        trace,
        _Counted(counts, 0.0),
        scale=1.0,
        misses=[float(value) for value in counts.misses],
        writebacks=[float(value) for value in counts.writebacks],
        footprint_lines=float(counts.first_touches),
    )


def _sampled(nest: ConcreteNest, trace: Trace, share: float, simulator: CacheSimulator) -> NestMeasurement:
    """Scales a chunk, size by size.

    Repeated misses (of lines that the chunk had touched before) grow with the length of the chunk, first touches only
    up to the footprint. A chunk shorter than the distance of a reuse takes a repeated miss for a first touch, so the
    level-fit model is a lower bound; it knows nothing of conflicts, so all misses of the chunk scaled are an upper one.
    Addresses that come from data are random draws in every chunk: small caches simply scale then.
    """
    counted = _count_second_half(trace, simulator)
    counts = counted.counts
    scale = trace.accesses / share / max(1, counts.loads + counts.stores)
    footprint = nest_facts(nest.loop_nest).footprint
    first_touches = min(counts.first_touches * scale, footprint.lines)
    drawn = any(access.indirect for access in nest.loop_nest.accesses)
    misses: list[float] = []
    writebacks: list[float] = []
    for index, size in enumerate(CACHE_BYTES):
        private = index < _PRIVATE
        bound = counts.misses[index] * scale if private else misses[-1]
        dirty = counts.writebacks[index] * scale if private else footprint.stored_lines
        if bound <= footprint.lines:  # every line is fetched once, whatever the model says
            lines = footprint.lines
        elif private and drawn:
            lines = bound
        else:
            fitted = fitted_misses(nest.loop_nest, size)
            estimate = max(fitted.lines, first_touches + counts.repeated_misses[index] * scale)
            lines = max(footprint.lines, min(estimate, bound))
            dirty = dirty if private else lines * _stored_share(fitted)
        misses.append(min([lines, *misses[-1:]]))
        writebacks.append(min([max(dirty, footprint.stored_lines), misses[-1], *writebacks[-1:]]))
    record = _record(nest, trace, counted, scale, misses, writebacks, footprint.lines)
    # New lines fill the vaults at random: a part of them is more uneven than the whole by the root of its share.
    evened = math.sqrt(min(1.0, counts.first_touches / footprint.lines)) if footprint.lines else 1.0
    first = tuple(1.0 + (value - 1.0) * evened for value in counts.first_touch_imbalance)
    new = counts.first_touches / max(1, counts.filter_misses)
    mixed = tuple(
        new * fresh + (1.0 - new) * repeated for fresh, repeated in zip(first, counts.repeated_imbalance, strict=True)
    )
    return replace(record, vault_imbalance=mixed, footprint_imbalance=first)


def _count_second_half(trace: Trace, simulator: CacheSimulator) -> _Counted:
    entries = trace.entries
    warm, middle = entries.size // 2, entries.size * 3 // 4
    simulator.reset(line_limit(entries))
    simulator.warm(entries[:warm])
    simulator.count(entries[warm:middle])
    first = np.array(simulator.misses())
    simulator.count(entries[middle:])
    counts = simulator.counts()
    total = np.array(counts.misses)
    first_rate = first / max(1, middle - warm)
    second_rate = (total - first) / max(1, entries.size - middle)
    errors = np.abs(first_rate - second_rate) / np.maximum(first_rate + second_rate, 1e-12)
    return _Counted(counts, float(max(errors[FILTER], errors[_L2])))


def _stored_share(fitted: Misses) -> float:
    return fitted.stored_lines / fitted.lines if fitted.lines else 0.0


def _record(
    nest: ConcreteNest,
    trace: Trace,
    counted: _Counted,
    scale: float,
    misses: Sequence[float],
    writebacks: Sequence[float],
    footprint_lines: float,
) -> NestMeasurement:
    counts = counted.counts
    accesses = counts.loads + counts.stores
    # The level-fit model does not tell load from store misses: those of sampled large caches split as at 1 MiB.
    shares = [
        store / (load + store) if load + store else 0.0
        for load, store in zip(counts.load_misses, counts.store_misses, strict=True)
    ]
    if scale != 1.0:
        shares[_PRIVATE:] = [shares[_PRIVATE - 1]] * len(SHARED_BYTES)
    filtered = max(1, counts.filter_misses)
    return NestMeasurement(
        code_hash=nest.function.code_hash,
        feature_hash=nest.loop_nest.feature_hash,
        loads=counts.loads * scale,
        stores=counts.stores * scale,
        load_misses=tuple(m * (1.0 - share) for m, share in zip(misses, shares, strict=True)),
        store_misses=tuple(m * share for m, share in zip(misses, shares, strict=True)),
        writebacks=tuple(writebacks),
        footprint_lines=footprint_lines,
        sequential_share=counts.sequential_misses / filtered,
        row_hit_share=counts.row_hits / filtered,
        vault_imbalance=counts.vault_imbalance,
        footprint_imbalance=counts.first_touch_imbalance,
        recorded_accesses=int(trace.entries.size),
        traced_share=min(1.0, 1.0 / scale) if accesses else 1.0,
        error_estimate=counted.error_estimate,
    )
