from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torch_pim.features.placement import BufferVersion
from torch_pim.models.cost_model.model import CostModel
from torch_pim.models.errors import ModelWarning
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.manifest import ColumnRange
from torch_pim.models.plan_time import IsolatedTimes, plan_time
from torch_pim.models.policies import create_policy
from torch_pim.models.policies.learned_residency import blend, overrides, regressed_times
from torch_pim.models.policies.two_stage import estimate_all
from torch_pim.models.residency import optimal_sides
from torch_pim.models.testing import make_tiny_bundle
from torch_pim.models.transition_change import TransitionChange


@pytest.fixture
def bundle(tmp_path):
    return make_tiny_bundle(tmp_path / "b")


def test_the_score_is_a_prior_on_the_regressed_gain():
    assert blend(100.0, None) == 100.0
    assert blend(100.0, 1.0) == 100.0
    assert blend(-100.0, 0.0) == -100.0
    assert blend(100.0, 0.0) == blend(-100.0, 1.0) == 0.0
    assert blend(100.0, 0.5) == 50.0


def test_a_host_nest_between_streams_is_overridden_with_a_reason(make_problem, make_copy, make_matmul, bundle):
    nests = [make_copy(2**22, name="stream"), make_matmul(16, 16, 700)]
    buffers = [
        BufferVersion(0, 2**24, "temporary", 0, (1,)),
        BufferVersion(1, 2**24, "temporary", 1, (2,)),
    ]
    problem = make_problem(nests, calls=[0, 1, 0], buffers=buffers)
    alone = create_policy("learned", bundle=bundle).place(problem)
    assert alone.sides() == ("pim", "host", "pim")
    together = create_policy("learned+residency", bundle=bundle).place(problem)
    assert together.sides() == ("pim", "pim", "pim")
    assert overrides(together) == 1
    moved = together.decisions[1]
    assert (moved.stage, moved.policy) == ("residency", "learned+residency")
    assert moved.reason.startswith("moved from host to pim: saves ")
    assert "was host as memory-bound, but the host is judged faster: cost model sees" in moved.reason
    assert together.decisions[0] == alone.decisions[0]


def test_forced_nests_stay(make_problem, make_copy, bundle):
    nests = [make_copy(2**22), make_copy(64, name="residue", partitionable=False)]
    problem = make_problem(nests, calls=[0, 1, 0])
    placement = create_policy("learned+residency", bundle=bundle).place(problem)
    assert placement.sides() == ("pim", "host", "pim")
    assert placement.decisions[1].stage == "forced"


def test_without_a_bundle_it_is_the_optimum_under_the_cost_model(make_problem, make_copy, make_matmul, tmp_path):
    nests = [make_copy(2**k, name=f"s{k}") for k in (8, 12, 16, 20)] + [make_matmul(32, 32, 32)]
    order = [0, 3, 1, 4, 2, 3, 0, 4, 4, 2, 1]
    buffers = [BufferVersion(i, 2**14, "temporary", i, (i + 1,)) for i in range(10)]
    problem = make_problem(nests, calls=order, buffers=buffers)
    with pytest.warns(ModelWarning, match="learned.residency"):
        policy = create_policy("learned+residency", bundle=tmp_path / "none")
    estimates = estimate_all(CostModel(), problem)
    times = IsolatedTimes(tuple(e.host_ns for e in estimates), tuple(e.device_ns for e in estimates))
    found = plan_time(problem, times, policy.place(problem).sides()).total_ns
    assert found == pytest.approx(plan_time(problem, times, optimal_sides(problem, times)).total_ns)
    assert found <= plan_time(problem, times, create_policy("cost-model").place(problem).sides()).total_ns


def test_residuals_correct_the_times_inside_the_training_range_only(make_problem, make_copy, tmp_path):
    problem = make_problem([make_copy(2**12), make_copy(2**20)])
    ranges = [ColumnRange("log_iterations", 10.0, 16.0)]
    bundle = Bundle.load(make_tiny_bundle(tmp_path / "r", residuals=(0.5, -0.25), ranges=ranges))
    plain = [(e.host_ns, e.device_ns) for e in estimate_all(bundle.cost_model, problem)]
    found = regressed_times(problem, plain, bundle)
    assert found.host_ns[0] == pytest.approx(plain[0][0] * math.exp(0.5))
    assert found.device_ns[0] == pytest.approx(plain[0][1] * math.exp(-0.25))
    assert (found.host_ns[1], found.device_ns[1]) == plain[1]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sides=st.lists(st.sampled_from(("host", "pim")), min_size=4, max_size=4), call=st.integers(0, 3))
def test_the_change_of_one_side_is_the_difference_of_plan_times(make_problem, make_copy, sides, call):
    buffers = [
        BufferVersion(0, 6400, "input", -1, (0, 2)),
        BufferVersion(1, 64000, "temporary", 0, (1, 2, 3)),
        BufferVersion(2, 640, "output", 3, (), leaves=True),
    ]
    problem = make_problem([make_copy(8)], calls=[0] * 4, buffers=buffers)
    times = IsolatedTimes((0.0,), (0.0,))
    other = list(sides)
    other[call] = "pim" if sides[call] == "host" else "host"
    expected = plan_time(problem, times, other).total_ns - plan_time(problem, times, sides).total_ns
    assert TransitionChange(problem, sides, "serial").saved_ns(call) == pytest.approx(expected)


def test_flush_mode_is_part_of_the_policy(make_problem, make_copy, bundle):
    policy = create_policy("learned+residency", bundle=bundle)
    problem = make_problem([make_copy(8)])
    assert replace(policy, flush="bandwidth").fingerprint(problem) != policy.fingerprint(problem)
