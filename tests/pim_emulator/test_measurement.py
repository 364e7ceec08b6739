"""Measurements of whole nests: complete, sampled, and of nests that are too long to run."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.pim_emulator.caches.geometry import CACHE_BYTES
from torch_pim.pim_emulator.caches.simulator import CacheSimulator
from torch_pim.pim_emulator.measurement import measure as measuring
from torch_pim.pim_emulator.measurement.measure import measure
from torch_pim.pim_emulator.measurement.record import NestMeasurement
from torch_pim.pim_emulator.tracing.batch import TracedBatch
from torch_pim.pim_emulator.tracing.recorder import TraceRecorder

Lowered = Callable[..., tuple[ConcreteNest, ...]]
KIB, MIB = 1024, 1024 * 1024
SIMULATOR = CacheSimulator()


def measured(nest: ConcreteNest, budget: int, capacity: int | None = None) -> NestMeasurement:
    recorder = TraceRecorder(capacity or 2 * budget)
    return measure(nest, TracedBatch([nest.function], recorder).open(nest, 0), budget, SIMULATOR)


def misses_at(measurement: NestMeasurement, nbytes: int) -> float:
    return measurement.misses()[CACHE_BYTES.index(nbytes)]


def test_stream_moves_each_line_once(lowered: Lowered) -> None:
    (nest,) = lowered("single")
    found = measured(nest, 2_000_000)
    lines = 512 * 1024 * 4 / 64
    assert (found.loads, found.stores) == (2 * 512 * 1024, 512 * 1024)
    assert found.load_misses == (2 * lines,) * len(CACHE_BYTES)
    assert found.store_misses == found.writebacks == (lines,) * len(CACHE_BYTES)
    assert found.footprint_lines == 3 * lines
    assert found.sequential_share > 0.99
    assert found.row_hit_share == pytest.approx(0.75, abs=0.001)
    assert max(found.vault_imbalance) < 1.02
    assert (found.traced_share, found.error_estimate) == (1.0, 0.0)
    assert found.recorded_accesses == 3 * 512 * 1024


def test_half_precision_moves_half_the_lines(lowered: Lowered) -> None:
    half, single = lowered("half", "single")
    assert measured(half, 2_000_000).misses()[0] == measured(single, 2_000_000).misses()[0] / 2


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("stream", 0.002),
        ("big_matmul", 0.03),
        ("big_vector", 0.005),
        ("big_transpose", 0.02),
        ("big_softmax", 0.005),
        ("big_rows", 0.1),
        ("big_chain", 0.002),
    ],
)
def test_sample_agrees_with_the_complete_trace(lowered: Lowered, name: str, tolerance: float) -> None:
    (nest,) = lowered(name)
    whole = measured(nest, 20_000_000, capacity=8_000_000)
    sample = measured(nest, 300_000)
    assert whole.traced_share == 1.0
    assert 0.0 < sample.traced_share < 0.5
    assert sample.recorded_accesses < 700_000
    assert sample.loads == pytest.approx(whole.loads, rel=0.01)
    assert sample.stores == pytest.approx(whole.stores, rel=0.02)
    for size in (32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB):
        assert misses_at(sample, size) == pytest.approx(misses_at(whole, size), rel=tolerance), size
    assert sample.footprint_lines == pytest.approx(whole.footprint_lines, rel=tolerance)
    assert sample.writebacks[-1] == pytest.approx(whole.writebacks[-1], rel=0.05)


def test_llc_misses_are_never_extrapolated(lowered: Lowered) -> None:
    # The chunk sees most of the second operand for the first time; scaled up, it would be fetched again and again.
    (nest,) = lowered("big_matmul")
    sample = measured(nest, 100_000)
    assert misses_at(sample, 16 * MIB) == pytest.approx((160 * 192 + 192 * 160 + 160 * 160) * 4 / 64, rel=0.01)


def test_misses_never_grow_with_the_cache(lowered: Lowered) -> None:
    for name in ("big_matmul", "big_rows", "big_transpose", "matmul"):
        (nest,) = lowered(name)
        found = measured(nest, 100_000)
        assert list(found.misses()) == sorted(found.misses(), reverse=True)
        assert all(w <= m * (1 + 1e-9) for w, m in zip(found.writebacks, found.misses(), strict=True))


def test_an_iteration_longer_than_the_recorder_is_truncated_but_counted(lowered: Lowered) -> None:
    (nest,) = lowered("cumulative")
    found = measured(nest, 500, capacity=1000)
    assert found.recorded_accesses == 1000
    assert found.loads + found.stores == 3 * 24 * 40 - 24
    assert 0.0 < found.traced_share < 1.0


def test_a_nest_too_long_to_run_is_modelled(lowered: Lowered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "EXECUTION_LIMIT", 10)
    (nest,) = lowered("big_vector")
    found = measured(nest, 1000)
    assert found.traced_share == 0.0
    assert found.recorded_accesses == 0
    assert math.isnan(found.error_estimate)
    assert misses_at(found, 16 * MIB) == pytest.approx(1024 * 2048 * 4 / 64, rel=0.01)


def test_error_estimate_is_small_where_the_chunk_is_uniform(lowered: Lowered) -> None:
    (stream,) = lowered("stream")
    assert measured(stream, 100_000).error_estimate < 0.01


def test_same_nest_same_measurement(lowered: Lowered) -> None:
    (nest,) = lowered("big_rows")
    assert measured(nest, 100_000) == measured(nest, 100_000)
