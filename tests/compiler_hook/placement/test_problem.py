"""The question that a policy is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.compiler_hook.placement.problem import placement_problem
from torch_pim.features.profile import HostProfile
from torch_pim.features.specs import load_device, load_host

Lower = Callable[..., LoweredProgram]


def test_nests_calls_and_profiles_are_aligned(lower: Lower) -> None:
    program = lower(lambda x: (torch.exp(x[:4]), torch.exp(x[4:]), x.sum(1)), torch.randn(8, 4))
    host, device = load_host("cpu-8c"), load_device("ndp-hmc-64")
    specialised = program.specialised()
    first = specialised.nests[0].function.code_hash
    profile = HostProfile(code_hash=first, host_id=host.identity, origin="wall", wall_time_ns=1000.0)
    foreign = replace(profile, host_id="another machine")
    with_profile, with_foreign = (placement_problem(specialised, host, device, {first: p}) for p in (profile, foreign))
    assert with_profile.nests == tuple(nest.loop_nest for nest in specialised.nests)
    assert [c.nest for c in with_profile.calls] == [0, 0, 1]
    assert with_profile.profiles == (profile, None)
    assert with_foreign.profiles == (None, None)
    assert (with_profile.host, with_profile.device) == (host, device)
