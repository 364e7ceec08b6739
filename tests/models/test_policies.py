from __future__ import annotations

from dataclasses import replace

import pytest

from torch_pim.features.placement import NestCall, PlacementProblem
from torch_pim.features.profile import HostProfile
from torch_pim.models.errors import DeviceMismatch, ModelMissing, ModelWarning, PlacementError, PolicyError
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.manifest import ColumnRange
from torch_pim.models.policies import Policy, create_policy, policy_names
from torch_pim.models.testing import make_tiny_bundle

BUILT_IN = ("learned", "learned+residency", "cost-model", "analytic", "host", "pim", "random")


@pytest.fixture
def bundle(tmp_path):
    return make_tiny_bundle(tmp_path / "tiny")


@pytest.fixture
def problem(make_problem, make_copy, make_matmul):
    """A stream that PIM wins, a product that the host wins, a tiny nest, and two nests that must stay."""
    nests = [
        make_copy(2**20, name="stream"),
        make_matmul(256, 256, 256),
        make_copy(100, name="tiny"),
        make_copy(2**20, name="double", element_type="f64"),
        make_copy(64, name="residue", partitionable=False),
    ]
    return make_problem(nests, calls=[2, 0, 2, 1, 2, 3, 4])


def sides(name, problem, **options):
    return create_policy(name, **options).place(problem).sides()


def test_names_are_fixed(bundle):
    assert policy_names()[:7] == BUILT_IN
    for name in BUILT_IN:
        policy = create_policy(name, bundle=bundle)
        assert isinstance(policy, Policy)
        assert policy.name == name


def test_each_policy_on_one_problem(problem, bundle):
    assert sides("host", problem) == ("host",) * 7
    assert sides("pim", problem) == ("pim",) * 5 + ("host",) * 2
    for name in ("learned", "cost-model", "analytic"):
        # tiny follows: the stream after it, the stream before it (a tie of distances), the product before it.
        assert sides(name, problem, bundle=bundle) == ("pim", "pim", "pim", "host", "host", "host", "host"), name


def test_every_decision_has_a_reason_for_a_person(problem, bundle):
    decisions = create_policy("learned", bundle=bundle).place(problem).decisions
    stream, product = decisions[1], decisions[3]
    assert (stream.stage, stream.policy) == ("boundedness", "learned")
    assert stream.reason.startswith("memory-bound: cost model sees 39")
    assert stream.reason.endswith("on PIM; score 0.95 >= 0.50")
    assert stream.score == pytest.approx(0.95, abs=1e-6)
    assert product.reason.startswith("compute-bound: cost model sees ")
    assert product.reason.endswith("; score 0.05 < 0.50")
    assert decisions[0].reason.endswith("; follows call1:stream after it to pim")
    assert decisions[2].reason.endswith("; follows call1:stream before it to pim")
    assert (decisions[5].stage, decisions[6].stage) == ("forced", "forced")
    assert decisions[5].reason == "element type f64 is not supported by round-device"


def test_the_analytic_reason_shows_intensity_and_balance(problem):
    decisions = create_policy("analytic").place(problem).decisions
    # 256^3 multiply-adds = 2 x 256^3 operations; 2 x 256^2 floats read, 256^2 read and written.
    assert decisions[3].reason.startswith("compute-bound: 32 operations per byte, machine balance 24 on host")
    assert decisions[1].reason.startswith("memory-bound: 0 operations per byte")


def test_pim_keeps_the_rest_on_the_host_with_the_reason(problem):
    decisions = create_policy("pim").place(problem).decisions
    assert [d.stage for d in decisions] == ["fixed"] * 5 + ["forced"] * 2
    assert decisions[6].reason.startswith("not partitionable")


def test_random_is_seeded_and_uses_both_sides(make_problem, make_copy):
    problem = make_problem([make_copy(2**16)], calls=[0] * 200)
    first = sides("random", problem, seed=1)
    assert first == sides("random", problem, seed=1)
    assert first != sides("random", problem, seed=2)
    assert 60 < first.count("pim") < 140


def test_the_same_problem_gets_the_same_placement(problem, bundle):
    for name in policy_names():
        policy = create_policy(name, bundle=bundle)
        assert policy.place(problem) == policy.place(problem) == create_policy(name, bundle=bundle).place(problem)


def test_nothing_around_a_follower_means_host(make_problem, make_copy):
    problem = make_problem([make_copy(10), make_copy(20)])
    decisions = create_policy("cost-model").place(problem).decisions
    assert {d.side for d in decisions} == {"host"}
    assert decisions[0].reason.endswith("nothing around it is decided, so it stays on the host")


def test_followers_take_the_nearest_side(make_problem, make_copy, make_matmul):
    nests = [make_copy(2**20), make_copy(10), make_matmul(256, 256, 256)]
    problem = make_problem(nests, calls=[0, 1, 1, 1, 1, 2, 1])
    assert sides("cost-model", problem) == ("pim", "pim", "pim", "host", "host", "host", "host")


def machine_range(low, high):
    return [ColumnRange("host_log_cores", low, high)]


def test_outside_the_machine_range_the_cost_model_decides(problem, tmp_path):
    bundle = make_tiny_bundle(tmp_path / "b", ranges=machine_range(0.0, 2.0))  # up to four cores, the host has eight
    decision = create_policy("learned", bundle=bundle).place(problem).decisions[1]
    assert (decision.side, decision.stage, decision.policy, decision.score) == ("pim", "fallback", "cost-model", None)
    assert decision.reason.startswith(
        "learned abstains (host_log_cores = 3 is outside the training range 0 to 2); memory-bound"
    )
    strict = create_policy("learned", bundle=bundle, on_model_error="error")
    with pytest.raises(DeviceMismatch, match="not trained for round-host with round-device: host_log_cores = 3"):
        strict.place(problem)


def test_outside_the_nest_range_only_that_nest_falls_back(problem, tmp_path):
    ranges = [*machine_range(0.0, 4.0), ColumnRange("log_iterations", 0.0, 22.0)]
    bundle = make_tiny_bundle(tmp_path / "b", ranges=ranges)
    decisions = create_policy("learned", bundle=bundle, on_model_error="error").place(problem).decisions
    assert (decisions[1].stage, decisions[3].stage) == ("boundedness", "fallback")
    assert "log_iterations = 24" in decisions[3].reason


def test_a_missing_bundle_warns_once_and_falls_back(problem, tmp_path):
    with pytest.warns(ModelWarning, match=r"ModelMissing: .*none/manifest.json cannot be read") as caught:
        policy = create_policy("learned", bundle=tmp_path / "none")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert policy.place(problem).sides() == sides("cost-model", problem)
    assert policy.place(problem).policy == "learned"
    decision = policy.place(problem).decisions[1]
    assert (decision.stage, decision.policy) == ("fallback", "cost-model")
    assert decision.reason.startswith("learned abstains (no usable model); memory-bound: cost model sees ")
    with pytest.raises(ModelMissing, match="torch-pim train"):
        create_policy("learned", bundle=tmp_path / "none", on_model_error="error")


def test_profiles_of_unaccepted_origin_are_not_shown_to_the_model(problem, bundle, host):
    slow = HostProfile("x", host.identity, "perf", wall_time_ns=1e12)
    profiled = replace(problem, profiles=(None, slow, None, None, None))
    learned, cost_model = (
        create_policy(n, bundle=bundle).place(profiled).decisions[3] for n in ("learned", "cost-model")
    )
    assert learned.side == "host"
    assert cost_model.side == "pim"


def test_a_loaded_bundle_or_its_path_are_the_same(problem, bundle):
    by_path, loaded = create_policy("learned", bundle=bundle), create_policy("learned", bundle=Bundle.load(bundle))
    assert by_path.place(problem) == loaded.place(problem)


def test_symbolic_nests_are_refused_with_the_mend(make_problem, make_copy):
    from torch_pim.features.extent import Polynomial
    from torch_pim.features.nest import Loop

    nest = replace(make_copy(8), loops=(Loop("parallel", Polynomial.symbol("a0.d0"), -1),))
    for name in ("cost-model", "pim", "random"):
        with pytest.raises(PlacementError, match=r"symbolic sizes a0.d0: bind them with LoopNest.at"):
            create_policy(name).place(make_problem([nest]))


def test_bad_requests_are_refused(bundle):
    with pytest.raises(PolicyError, match=r"unknown policy 'lerned'. Did you mean 'learned'"):
        create_policy("lerned")
    with pytest.raises(PolicyError, match="expected 'fallback' or 'error'"):
        create_policy("host", on_model_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=r"seed 1.5: expected an integer"):
        create_policy("random", seed=1.5)  # type: ignore[arg-type]


def test_an_empty_problem_is_placed(host, device, bundle):
    problem = PlacementProblem((), (), (), (), host, device)
    for name in policy_names():
        assert create_policy(name, bundle=bundle).place(problem).decisions == ()


def test_a_nest_that_is_never_called_does_no_harm(make_copy, host, device):
    problem = PlacementProblem((make_copy(9), make_copy(2**20)), (NestCall(1, "only"),), (), (None, None), host, device)
    assert create_policy("cost-model").place(problem).sides() == ("pim",)


def test_scores_are_shown_apart_from_the_threshold():
    from torch_pim.models.wording import against_threshold, duration, nbytes

    assert against_threshold(0.97, 0.5) == "score 0.97 >= 0.50"
    assert against_threshold(0.4999, 0.5) == "score 0.4999 < 0.5000"
    assert against_threshold(0.5, 0.5) == "score 0.50 >= 0.50"
    assert [duration(t) for t in (0.0, 999.4, 12_100.0, 3e6, 1.5e9)] == ["0 ns", "999 ns", "12.1 us", "3 ms", "1.5 s"]
    assert [nbytes(n) for n in (10, 2048, 3 * 2**20, 2**31)] == ["10 B", "2 KiB", "3 MiB", "2 GiB"]
