from __future__ import annotations

import math
from dataclasses import replace

import pytest

from torch_pim.features.placement import BufferVersion, PlacementProblem
from torch_pim.models.errors import PlacementError
from torch_pim.models.plan_time import IsolatedTimes, plan_time

KILO_LINES = 1000 * 64


def chain(make_problem, make_copy, buffers):
    return make_problem([make_copy(100, name=n) for n in "abc"], buffers=buffers)


TIMES = IsolatedTimes(host_ns=(10_000.0, 20_000.0, 30_000.0), device_ns=(5_000.0, 6_000.0, 7_000.0))


def test_all_on_host_pays_nothing_but_execution(make_problem, make_copy):
    problem = chain(make_problem, make_copy, [BufferVersion(0, KILO_LINES, "temporary", 0, (1, 2))])
    result = plan_time(problem, TIMES, ("host",) * 3)
    assert result.total_ns == result.execution_ns == 60_000.0
    assert (result.flush_ns, result.switch_ns, result.switches, result.placed_on_pim) == (0.0, 0.0, 0, 0)


def test_one_offload_pays_two_switches_and_both_flushes(make_problem, make_copy):
    buffers = [
        BufferVersion(0, KILO_LINES, "temporary", 0, (1,)),
        BufferVersion(1, KILO_LINES, "temporary", 1, (2,)),
        BufferVersion(2, KILO_LINES, "output", 2, (), leaves=True),
    ]
    result = plan_time(chain(make_problem, make_copy, buffers), TIMES, ("host", "pim", "host"))
    # 1000 host lines at 60 ns; 1000 device lines over 64 cores = 16 lines per core at 30 ns.
    assert result.flush_ns == 1000 * 60 + 16 * 30
    assert (result.switches, result.switch_ns) == (2, 4_000.0)
    assert result.execution_ns == 10_000 + 6_000 + 30_000
    assert result.transition_ns == result.flush_ns + result.switch_ns
    assert result.total_ns == result.execution_ns + result.transition_ns


def test_the_ends_of_the_plan_are_on_the_host(make_problem, make_copy):
    buffers = [
        BufferVersion(0, KILO_LINES, "input", -1, (0,)),
        BufferVersion(1, KILO_LINES, "output", 2, (), leaves=True),
    ]
    result = plan_time(chain(make_problem, make_copy, buffers), TIMES, ("pim",) * 3)
    assert result.switches == 2
    assert result.flush_ns == 1000 * 60 + 16 * 30


def test_a_version_is_flushed_once_for_many_readers(make_problem, make_copy):
    problem = chain(make_problem, make_copy, [BufferVersion(0, KILO_LINES, "temporary", 0, (1, 2))])
    assert plan_time(problem, TIMES, ("host", "pim", "pim")).flush_ns == 60_000.0
    assert plan_time(problem, TIMES, ("pim", "pim", "host")).flush_ns == 480.0


def test_weights_are_resident(make_problem, make_copy):
    problem = chain(make_problem, make_copy, [BufferVersion(0, 2**30, "weight", -1, (0, 1, 2))])
    assert plan_time(problem, TIMES, ("pim",) * 3).flush_ns == 0.0


def test_no_more_is_dirty_than_the_caches_hold(make_problem, make_copy):
    huge = [BufferVersion(0, 2**32, "temporary", 0, (1,)), BufferVersion(1, 2**32, "temporary", 1, (2,))]
    result = plan_time(chain(make_problem, make_copy, huge), TIMES, ("host", "pim", "host"))
    assert result.flush_ns == 16 * 2**20 / 64 * 60 + 32 * 1024 / 64 * 30


def test_inputs_share_the_cache_that_can_be_dirty(make_problem, make_copy, host):
    """A key-value cache of many inputs lies in memory: only one last-level cache of it can be dirty."""
    caches = [BufferVersion(i, host.llc_bytes, "input", -1, (0,)) for i in range(64)]
    result = plan_time(chain(make_problem, make_copy, caches), TIMES, ("pim", "host", "host"))
    assert result.flush_ns == pytest.approx(host.llc_bytes / 64 * 60)


def test_bandwidth_flush_is_bytes_over_bandwidth(make_problem, make_copy):
    buffers = [BufferVersion(0, 64_000, "temporary", 0, (1,)), BufferVersion(1, 64_000, "temporary", 1, (2,))]
    result = plan_time(chain(make_problem, make_copy, buffers), TIMES, ("host", "pim", "host"), flush="bandwidth")
    assert result.flush_ns == pytest.approx(64_000 / (40 * 0.8) + 64_000 / (320 * 0.8))


def test_a_partial_overwrite_reads_the_old_version(make_problem, make_copy):
    buffers = [BufferVersion(0, KILO_LINES, "input", -1, (1,)), BufferVersion(1, KILO_LINES, "temporary", 1, (2,))]
    result = plan_time(chain(make_problem, make_copy, buffers), TIMES, ("host", "pim", "pim"))
    assert result.flush_ns == 60_000.0


def test_a_nest_called_twice_is_charged_twice(make_problem, make_copy):
    problem = make_problem([make_copy(100)], calls=[0, 0])
    assert plan_time(problem, IsolatedTimes((7.0,), (1.0,)), ("host", "pim")).execution_ns == 8.0


@pytest.mark.parametrize(
    ("times", "sides", "match"),
    [
        (IsolatedTimes((1.0,), (1.0,)), ("host",) * 3, "1 host times for 3 nests"),
        (TIMES, ("host",), "1 sides for 3 calls"),
        (TIMES, ("host", "gpu", "host"), "side 'gpu' of call 'call1:b'"),
        (replace(TIMES, device_ns=(1.0, math.inf, 1.0)), ("host", "pim", "host"), "nest 'b' has no time"),
        (replace(TIMES, host_ns=(1.0, -1.0, 1.0)), ("host",) * 3, "nest 'b' is -1.0 ns"),
    ],
)
def test_bad_input_is_refused(make_problem, make_copy, times, sides, match):
    with pytest.raises(PlacementError, match=match):
        plan_time(chain(make_problem, make_copy, ()), times, sides)


def test_bad_buffers_and_modes_are_refused(make_problem, make_copy):
    problem: PlacementProblem = chain(make_problem, make_copy, [BufferVersion(7, 4, "temporary", 0, (3,))])
    with pytest.raises(PlacementError, match="buffer version 7 names call 3"):
        plan_time(problem, TIMES, ("host",) * 3)
    with pytest.raises(PlacementError, match="expected 'serial' or 'bandwidth'"):
        plan_time(problem, TIMES, ("host",) * 3, flush="fast")  # type: ignore[arg-type]
