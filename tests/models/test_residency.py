from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torch_pim.features.placement import BufferVersion
from torch_pim.models.errors import PlacementError
from torch_pim.models.plan_time import IsolatedTimes, plan_time
from torch_pim.models.residency import optimal_sides

time_ns = st.one_of(st.integers(0, 60_000), st.integers(0, 10**9)).map(float)


@st.composite
def small_plans(draw):
    calls = draw(st.integers(1, 7))
    nests = draw(st.integers(1, calls))
    order = [draw(st.integers(0, nests - 1)) for _ in range(calls)]
    buffers = []
    for identity in range(draw(st.integers(0, 8))):
        producer = draw(st.integers(-1, calls - 1))
        later = [c for c in range(calls) if c > producer]
        consumers = tuple(sorted(draw(st.sets(st.sampled_from(later))))) if later else ()
        role = draw(st.sampled_from(("weight", "input"))) if producer < 0 else "temporary"
        size = draw(st.sampled_from((64, 6400, 64 * 700, 2**22, 2**26)))
        buffers.append(BufferVersion(identity, size, role, producer, consumers, leaves=draw(st.booleans())))
    host = [draw(time_ns) for _ in range(nests)]
    device = [draw(st.one_of(time_ns, st.just(math.inf))) for _ in range(nests)]
    forced = [draw(st.sampled_from((None, None, None, "host"))) for _ in range(calls)]
    return nests, order, buffers, IsolatedTimes(tuple(host), tuple(device)), forced


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=small_plans(), flush=st.sampled_from(("serial", "bandwidth")))
def test_the_cut_is_the_best_of_all_assignments(make_problem, make_copy, plan, flush):
    nests, order, buffers, times, forced = plan
    problem = make_problem([make_copy(8, name=f"n{i}") for i in range(nests)], calls=order, buffers=buffers)
    sides = optimal_sides(problem, times, flush, forced)
    assert all(asked in (None, got) for asked, got in zip(forced, sides, strict=True))
    best = min(
        plan_time(problem, times, candidate, flush).total_ns
        for candidate in product(("host", "pim"), repeat=len(order))
        if all(f in (None, s) for f, s in zip(forced, candidate, strict=True))
        and all(s == "host" or math.isfinite(times.device_ns[n]) for n, s in zip(order, candidate, strict=True))
    )
    assert plan_time(problem, times, sides, flush).total_ns == pytest.approx(best, rel=1e-9, abs=1.0)


def test_small_gains_do_not_pay_two_switches(make_problem, make_copy):
    problem = make_problem([make_copy(8, name=n) for n in "abc"])
    times = IsolatedTimes((10_000.0, 10_000.0, 10_000.0), (20_000.0, 6_500.0, 20_000.0))
    assert optimal_sides(problem, times) == ("host", "host", "host")
    times = IsolatedTimes((10_000.0, 10_000.0, 10_000.0), (20_000.0, 5_900.0, 20_000.0))
    assert optimal_sides(problem, times) == ("host", "pim", "host")


def test_a_slower_nest_stays_on_the_device_between_two_fast_ones(make_problem, make_copy):
    problem = make_problem([make_copy(8, name=n) for n in "abc"])
    times = IsolatedTimes((90_000.0, 1_000.0, 90_000.0), (9_000.0, 4_500.0, 9_000.0))
    assert optimal_sides(problem, times) == ("pim", "pim", "pim")


def test_ties_go_to_the_host(make_problem, make_copy):
    problem = make_problem([make_copy(8)])
    assert optimal_sides(problem, IsolatedTimes((10_000.0,), (6_000.0,))) == ("host",)


def test_times_of_seconds_and_of_nanoseconds_in_one_plan(make_problem, make_copy):
    # A 32-bit flow of plain nanoseconds would overflow on the first nest or lose the last ones.
    names = "abcd"
    problem = make_problem([make_copy(8, name=n) for n in names])
    times = IsolatedTimes((9e12, 5_000.0, 9e12, 4_001.0), (1e12, 1_001.0, 9.5e12, 1.0))
    assert optimal_sides(problem, times) == ("pim", "pim", "host", "host")
    times = IsolatedTimes((9e12, 5_000.0, 9e12, 4_002.0), (1e12, 1_001.0, 9.5e12, 1.0))
    assert optimal_sides(problem, times) == ("pim", "pim", "host", "pim")


def test_a_call_without_a_time_on_its_side_is_refused(make_problem, make_copy):
    problem = make_problem([make_copy(8, name="scatter")])
    with pytest.raises(PlacementError, match=r"'call0:scatter' has no finite time on pim"):
        optimal_sides(problem, IsolatedTimes((1.0,), (math.nan,)), forced=("pim",))
    with pytest.raises(PlacementError, match="either side"):
        optimal_sides(problem, IsolatedTimes((math.inf,), (math.nan,)))
    with pytest.raises(PlacementError, match="2 forced sides for 1 calls"):
        optimal_sides(problem, IsolatedTimes((1.0,), (1.0,)), forced=(None, None))
