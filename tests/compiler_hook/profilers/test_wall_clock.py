"""Wall-clock profiles, with a clock that the test controls and with the real one."""

from __future__ import annotations

import hashlib
import math

import pytest

from torch_pim.compiler_hook.codegen import kernel as kernel_module
from torch_pim.compiler_hook.outline.nest_function import (
    ConcreteNest,
    ConcreteParameter,
    MemRefParameter,
    NestFunction,
)
from torch_pim.compiler_hook.profilers.cpu_identity import read_cpu_identity
from torch_pim.compiler_hook.profilers.wall_clock import MINIMUM_REPEATS, WallClockProfiler
from torch_pim.compiler_hook.protocols import Profiler
from torch_pim.features.nest import Loop, LoopNest


def doubling(count: int) -> ConcreteNest:
    """o[i] = 2 x[i]."""
    memref = f"memref<{count}xf32>"
    text = f"""module {{
    func.func @nest(%x: {memref}, %o: {memref}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {count} : index
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
        %v = memref.load %x[%i] : {memref}
        %r = arith.addf %v, %v : f32
        memref.store %r, %o[%i] : {memref}
        scf.reduce
      }}
      return
    }} }}"""
    code_hash = hashlib.sha256(text.encode()).hexdigest()
    nest = LoopNest(
        f"double_{count}", (Loop("parallel", count, -1),), 1, (), (), (), "compute", True, code_hash, ("aten.mul",)
    )
    function = NestFunction(code_hash, text, (MemRefParameter("f32", (count,), (1,), 0),) * 2, nest)
    return ConcreteNest(function, nest, (ConcreteParameter("f32", (count,), (1,), 0),) * 2)


class Clock:
    """Nanoseconds that pass by 3 per iteration that runs, and by 40 per call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        self.extra = iter(())
        real = kernel_module.BoundKernel.__call__

        def call(kernel: kernel_module.BoundKernel, lo: int, hi: int) -> None:
            real(kernel, lo, hi)
            self.now += 40 + 3 * (hi - lo) + (next(self.extra, 0) if hi > lo else 0)

        monkeypatch.setattr(kernel_module.BoundKernel, "__call__", call)

    def __call__(self) -> int:
        return self.now


@pytest.mark.parametrize("warm", [True, False])
def test_median_without_the_time_of_an_empty_call(monkeypatch, warm):
    clock = Clock(monkeypatch)
    profiler: Profiler = WallClockProfiler("some-host", repeats=5, warm=warm, clock=clock)
    (profile,) = profiler.profile([doubling(10_000)])
    assert profile.wall_time_ns == 30_000
    assert profile.wall_time_spread == 0.0
    assert profile.repeats == 5
    assert profile.warm is warm
    assert (profile.origin, profile.host_id) == ("wall", "some-host")
    assert math.isnan(profile.instructions)
    assert math.isnan(profile.llc_misses)


def test_spread_is_the_quartile_distance_over_the_median(monkeypatch):
    clock = Clock(monkeypatch)
    clock.extra = iter([0, 10_000, 0, 20_000, 40_000, 30_000])  # the first run only sizes the batches
    (profile,) = WallClockProfiler("h", repeats=5, warm=False, clock=clock).profile([doubling(10_000)])
    assert profile.wall_time_ns == 50_000
    assert profile.wall_time_spread == pytest.approx(20_000 / 50_000)


def test_budget_ends_the_repeats_after_the_minimum(monkeypatch):
    clock = Clock(monkeypatch)
    (profile,) = WallClockProfiler("h", repeats=50, budget_ns=1, clock=clock).profile([doubling(10_000)])
    assert profile.repeats == MINIMUM_REPEATS


def test_equal_nests_are_measured_once_and_order_is_kept(monkeypatch):
    clock = Clock(monkeypatch)
    small, large = doubling(1000), doubling(5000)
    profiles = WallClockProfiler("h", repeats=3, clock=clock).profile([large, small, large])
    assert [p.wall_time_ns for p in profiles] == [15_000, 3_000, 15_000]
    assert profiles[0] is profiles[2]
    assert [p.code_hash for p in profiles] == [n.function.code_hash for n in (large, small, large)]


def test_real_clock():
    nest = doubling(1 << 20)
    (cold,) = WallClockProfiler(repeats=3, warm=False).profile([nest])
    (warm,) = WallClockProfiler(repeats=3, warm=True, threads=2).profile([nest])
    assert cold.host_id == warm.host_id == read_cpu_identity().host_id
    # A million loads and stores take between 10 us (100 TB/s would be less) and a second.
    assert 1e4 < cold.wall_time_ns < 1e9
    assert 1e4 < warm.wall_time_ns < 1e9


def test_too_few_repeats_are_refused():
    with pytest.raises(ValueError, match="at least 3 repeats, found 2"):
        WallClockProfiler(repeats=2)
