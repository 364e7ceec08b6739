from __future__ import annotations

import textwrap

import pytest

from torch_pim.models.errors import PolicyError
from torch_pim.models.policies import create_policy, policy_names


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes an installed distribution with one module and its entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(distribution, entries):
        module = distribution.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(
            textwrap.dedent("""
            from torch_pim.models.policies.host import HostPolicy
            def create(request):
                return HostPolicy(name=request.name)
            def broken(request):
                return object()
            """)
        )
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{name} = {target}" for name, target in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[torch_pim.policies]", *lines]))

    return make


def test_a_plug_in_is_found_and_used(install, make_problem, make_copy):
    install("my-plugin", {"mine": "my_plugin:create"})
    assert policy_names()[-1] == "mine"
    assert create_policy("mine").place(make_problem([make_copy(8)])).sides() == ("host",)
    with pytest.raises(PolicyError, match="Did you mean 'mine'"):
        create_policy("mines")


def test_a_name_that_two_providers_claim_is_an_error_naming_both(install):
    install("first-plugin", {"mine": "first_plugin:create"})
    install("second-plugin", {"mine": "second_plugin:create"})
    with pytest.raises(PolicyError, match=r"'mine': .*(first|second)-plugin .* and (first|second)-plugin"):
        create_policy("mine")


def test_a_built_in_name_cannot_be_taken(install):
    install("bold-plugin", {"learned": "bold_plugin:create"})
    with pytest.raises(PolicyError, match="'learned': torch-pim itself and bold-plugin"):
        policy_names()


def test_a_broken_plug_in_is_named(install):
    install("bad-plugin", {"gone": "bad_plugin:nothing", "odd": "bad_plugin:broken", "text": "bad_plugin:__doc__"})
    with pytest.raises(PolicyError, match=r"'gone' of bad-plugin \(bad_plugin:nothing\) cannot be loaded"):
        create_policy("gone")
    with pytest.raises(PolicyError, match="expected name, place and fingerprint"):
        create_policy("odd")
    with pytest.raises(PolicyError, match="expected a factory function"):
        create_policy("text")
