"""Options resolved to what a compilation uses: machine specs, device, policy, profiles, thread pool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch_pim.compiler_hook import registry
from torch_pim.compiler_hook.errors import OptionError
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.protocols import Device
from torch_pim.compiler_hook.runtime.host_pool import HostPool
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.profile import HostProfile
from torch_pim.features.profile_io import read_profiles
from torch_pim.features.specs import load_device, load_host
from torch_pim.models.policies import Policy


@dataclass(frozen=True)
class Target:
    """Where nests may run and who decides."""

    options: CompileOptions
    host: HostSpec
    device_spec: DeviceSpec
    device: Device
    policy: Policy
    profiles: Mapping[str, HostProfile]
    """Code hash -> saved profile of `host`."""
    pool: HostPool


def resolve(options: CompileOptions) -> Target:
    """Loads everything the options name; each unknown name or bad file is an error that says what is known."""
    host = load_host(options.host)
    device_spec = load_device(options.device)
    policy = registry.policies.load(options.policy)(
        bundle=options.bundle, seed=options.seed, on_model_error=options.on_model_error
    )
    return Target(
        options=options,
        host=host,
        device_spec=device_spec,
        device=registry.create_device(device_spec),
        policy=policy,
        profiles={} if options.profile is None else profiles_of(host, options.profile),
        pool=HostPool(usable_cores() if options.threads is None else options.threads),
    )


def profiles_of(host: HostSpec, path: Path) -> Mapping[str, HostProfile]:
    """The file's profiles of this host by code hash; OptionError if it holds profiles of other hosts only."""
    found = read_profiles(path)
    own = {profile.code_hash: profile for profile in found if profile.host_id == host.identity}
    if found and not own:
        others = ", ".join(sorted({profile.host_id for profile in found}))
        raise OptionError(
            f"option 'profile': {path} holds no profile of host {host.identity}, only of {others}; "
            f"make one with 'torch-pim profile MODEL --host {host.name} --output FILE', "
            "or choose the host that it was taken on"
        )
    return own


def usable_cores() -> int:
    """Cores that this process may run on, where the system says so, else all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
