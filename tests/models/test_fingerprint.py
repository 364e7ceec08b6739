from __future__ import annotations

from dataclasses import replace

import pytest

from torch_pim.features import source_digest
from torch_pim.features.profile import HostProfile
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.policies import create_policy, policy_names
from torch_pim.models.policies import fingerprint as module
from torch_pim.models.testing import make_tiny_bundle


@pytest.fixture
def problem(make_problem, make_copy):
    return make_problem([make_copy(4096)])


@pytest.fixture
def bundle(tmp_path):
    return make_tiny_bundle(tmp_path / "b")


def test_it_is_stable_and_part_of_the_placement(problem, bundle):
    seen = set()
    for name in policy_names():
        first = create_policy(name, bundle=bundle).fingerprint(problem)
        assert first == create_policy(name, bundle=bundle).fingerprint(problem)
        assert first == create_policy(name, bundle=bundle).place(problem).fingerprint
        assert len(first) == 64
        seen.add(first)
    assert len(seen) == len(policy_names())


def test_it_changes_with_machines_profiles_and_objective(problem, host, device):
    profile = HostProfile("x", host.identity, "simulated", wall_time_ns=1.0)
    variants = [
        problem,
        replace(problem, host=replace(host, cores=4)),
        replace(problem, device=replace(device, launch_ns=1.0)),
        replace(problem, profiles=(profile,)),
        replace(problem, profiles=(replace(profile, wall_time_ns=2.0),)),
    ]
    for name in ("cost-model", "host", "pim", "random", "analytic"):
        assert len({create_policy(name).fingerprint(v) for v in variants}) == len(variants)


def test_names_and_sources_of_machines_do_not_count(problem, host):
    renamed = replace(problem, host=replace(host, name="other", sources={"cores": "counted"}))
    assert create_policy("host").fingerprint(renamed) == create_policy("host").fingerprint(problem)


def test_it_changes_with_bundle_constants_seed_and_options(problem, bundle, tmp_path):
    other = make_tiny_bundle(tmp_path / "c", threshold=0.6)
    fitted = make_tiny_bundle(tmp_path / "d", constants=CostConstants(host_compute=2.0))
    for name in ("learned", "learned+residency"):
        prints = {create_policy(name, bundle=b).fingerprint(problem) for b in (bundle, other, fitted)}
        prints.add(create_policy(name, bundle=bundle, on_model_error="error").fingerprint(problem))
        assert len(prints) == 4
    assert create_policy("cost-model", bundle=fitted).fingerprint(problem) != create_policy("cost-model").fingerprint(
        problem
    )
    assert create_policy("random", seed=1).fingerprint(problem) != create_policy("random").fingerprint(problem)


def test_it_changes_with_the_code(problem, monkeypatch):
    before = create_policy("host").fingerprint(problem)
    monkeypatch.setattr(module, "code_version", lambda: "another version of the sources")
    assert create_policy("host").fingerprint(problem) != before


def test_the_code_version_covers_every_source_of_both_rooms():
    from importlib import resources

    found = [name for name, _ in source_digest._sources(resources.files("torch_pim.models"), "models")]
    assert "models.plan_time.py" in found
    assert "models.policies.learned.py" in found
    assert "models.cost_model.traffic.py" in found
