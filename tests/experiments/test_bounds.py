"""Oracle and optimum: identities that hold for any times, and what the device cannot run."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_pim.experiments.bounds import EmulatedNests, emulate, optimum_sides, oracle_sides
from torch_pim.experiments.comparison.compare import OptimumError, policy_results
from torch_pim.experiments.comparison.records import OPTIMUM, ORACLE
from torch_pim.experiments.lowered_model import lower_reference
from torch_pim.features.placement import BufferVersion, NestCall, PlacementProblem
from torch_pim.features.specs import load_device, load_host
from torch_pim.models.plan_time import IsolatedTimes
from torch_pim.models.testing import stream_nest
from torch_pim.pim_emulator.device import EmulatedDevice

HOST, DEVICE = load_host("cpu-8c"), load_device("ndp-hmc-64")


def problem_of(order, buffers=()):
    nests = tuple(stream_nest(64, name=f"nest{i}") for i in range(max(order, default=-1) + 1))
    calls = tuple(NestCall(nest, f"call{i}") for i, nest in enumerate(order))
    return PlacementProblem(nests, calls, tuple(buffers), (None,) * len(nests), HOST, DEVICE)


@st.composite
def timed_plans(draw):
    """A chain in which every call reads what the one before it wrote, with times from launch size to milliseconds."""
    nests = draw(st.integers(1, 5))
    order = [*range(nests), *draw(st.lists(st.integers(0, nests - 1), max_size=6))]
    sizes = [draw(st.sampled_from((64, 4096, 2**20))) for _ in order]
    buffers = [BufferVersion(0, sizes[0], "input", -1, (0,))]
    for call, size in enumerate(sizes):
        last = call == len(order) - 1
        buffers.append(BufferVersion(call + 1, size, "temporary", call, () if last else (call + 1,), leaves=last))
    time_ns = st.floats(100.0, 1e7)
    host = tuple(draw(time_ns) for _ in range(nests))
    device = tuple(draw(st.one_of(time_ns, st.just(math.inf))) for _ in range(nests))
    choices = [draw(st.sampled_from(("host", "pim"))) for _ in order]
    sides = tuple("host" if device[nest] == math.inf else side for nest, side in zip(order, choices, strict=True))
    return problem_of(order, buffers), IsolatedTimes(host, device), sides


@settings(max_examples=60, deadline=None)
@given(plan=timed_plans(), flush=st.sampled_from(("serial", "bandwidth")))
def test_nothing_beats_the_bounds(plan, flush):
    problem, times, sides = plan
    optimum = optimum_sides(problem, times, flush)
    host = ("host",) * len(problem.calls)
    given_sides = {"some": sides, "host": host, ORACLE: oracle_sides(problem, times), OPTIMUM: optimum}
    results = policy_results(problem, times, given_sides, flush)
    assert results[ORACLE].nest_regret == 0.0
    assert results[OPTIMUM].plan_regret == 0.0
    assert results["host"].speedup == 1.0
    assert results["host"].plan.total_ns == math.fsum(times.host_ns[call.nest] for call in problem.calls)
    for result in results.values():
        assert result.nest_regret >= 0.0
        assert result.plan_regret >= 0.0
        assert result.plan.total_ns >= results[OPTIMUM].plan.total_ns * (1 - 1e-6) - 1.0
        assert result.speedup == pytest.approx(results["host"].plan.total_ns / result.plan.total_ns)


def test_regrets_by_hand():
    # Times in ns; no buffers, so each change of side costs one switch of the device (2000 ns) and nothing else.
    problem = problem_of([0, 1, 0])
    times = IsolatedTimes((50_000.0, 1_000.0), (10_000.0, 3_000.0))
    assert DEVICE.switch_ns == 2000.0
    assert oracle_sides(problem, times) == ("pim", "host", "pim")
    assert optimum_sides(problem, times) == ("pim", "pim", "pim")
    sides = {name: function(problem, times) for name, function in ((ORACLE, oracle_sides), (OPTIMUM, optimum_sides))}
    results = policy_results(problem, times, {"host": ("host",) * 3, **sides}, "serial")
    assert results["host"].plan.total_ns == 101_000.0
    assert results[ORACLE].plan.total_ns == 21_000.0 + 4 * 2000.0
    assert results[OPTIMUM].plan.total_ns == 23_000.0 + 2 * 2000.0
    assert results["host"].nest_regret == pytest.approx(101 / 21 - 1)
    assert results[ORACLE].plan_regret == pytest.approx(29 / 27 - 1)
    assert results[OPTIMUM].nest_regret == pytest.approx(23 / 21 - 1)
    assert results[OPTIMUM].speedup == pytest.approx(101 / 27)


def test_ties_go_to_the_host():
    problem = problem_of([0])
    assert oracle_sides(problem, IsolatedTimes((10.0,), (10.0,))) == ("host",)


def test_a_program_without_calls_has_no_regret():
    problem = problem_of([])
    results = policy_results(problem, IsolatedTimes((), ()), {"host": (), ORACLE: (), OPTIMUM: ()}, "serial")
    assert all(r.speedup == 1.0 and r.nest_regret == 0.0 and r.plan_regret == 0.0 for r in results.values())


def test_a_plan_faster_than_the_optimum_is_a_fault():
    problem = problem_of([0])
    times = IsolatedTimes((1e6,), (1e3,))
    with pytest.raises(OptimumError, match="policy fast takes"):
        policy_results(problem, times, {"fast": ("pim",), OPTIMUM: ("host",)}, "serial")


class CountingTimes:
    """A timing model that gives the position of a nest as its time."""

    version = "test"

    def host_times(self, nests, host):
        return [Timing(10.0 + i) for i in range(len(nests))]

    def device_times(self, nests, device):
        return [Timing(20.0 + i) for i in range(len(nests))]


class Timing:
    components: dict = {}  # noqa: RUF012

    def __init__(self, total_ns):
        self.total_ns = total_ns


def test_emulated_times_stand_in_the_order_of_the_problem():
    lowered = lower_reference("llama-small", {"phase": "decode"}).lowered
    problem = lowered.problem(HOST, DEVICE)
    nests = lowered.concrete_nests()
    found = emulate(problem, nests, CountingTimes(), EmulatedDevice(DEVICE))
    assert isinstance(found, EmulatedNests)
    assert found.times.host_ns == tuple(10.0 + i for i in range(len(nests)))
    for number, (nest, reason) in enumerate(zip(problem.nests, found.refused, strict=True)):
        assert (reason is None) == nest.partitionable
        assert found.times.device_ns[number] == (20.0 + number if reason is None else math.inf)
    assert any(reason is not None and "not partitionable" in reason for reason in found.refused)


def test_what_the_device_itself_refuses_stays_on_the_host():
    class Picky(EmulatedDevice):
        def supports(self, nest):
            return "not today"

    lowered = lower_reference("add", {"rows": 8, "columns": 8}).lowered
    found = emulate(lowered.problem(HOST, DEVICE), lowered.concrete_nests(), CountingTimes(), Picky(DEVICE))
    assert found.refused == ("not today",)
    assert oracle_sides(lowered.problem(HOST, DEVICE), found.times) == ("host",)
