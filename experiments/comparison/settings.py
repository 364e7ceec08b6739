"""What is compared: policies, machines, profiles, checked and loaded before any model is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.registry import create_device
from torch_pim.compiler_hook.target import Target, resolve
from torch_pim.experiments.comparison.profile_settings import ProfileSetting
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.profile import HostProfile
from torch_pim.features.specs import load_device, load_host
from torch_pim.models.policies import Policy
from torch_pim.models.transitions import Flush


@dataclass(frozen=True)
class CompareSettings:
    """Everything that a comparison needs besides the model and the times."""

    policies: Mapping[str, Policy]
    hosts: tuple[HostSpec, ...]
    devices: tuple[DeviceSpec, ...]
    profiles: tuple[ProfileSetting, ...]
    flush: Flush
    """The flush model that is shown first."""
    base: Target

    @classmethod
    def load(
        cls,
        policies: tuple[str, ...],
        hosts: tuple[str, ...],
        devices: tuple[str, ...],
        profiles: tuple[ProfileSetting, ...],
        flush: Flush = "serial",
        options: CompileOptions | None = None,
    ) -> CompareSettings:
        """Loads policies and machines by name; `options` give bundle, seed and the answer to model errors.

        Raises OptionError, PolicyError or SpecError for unknown names, and ModelError for a bundle that cannot be used
        if the options say so.
        """
        base = resolve(replace(options or CompileOptions(), policy="host", profile=None))
        return cls(
            policies={name: resolve(replace(base.options, policy=name)).policy for name in policies},
            hosts=tuple(load_host(name) for name in hosts),
            devices=tuple(load_device(name) for name in devices),
            profiles=profiles,
            flush=flush,
            base=base,
        )

    def target(self, policy: Policy, host: HostSpec, device: DeviceSpec, profiles: Mapping[str, HostProfile]) -> Target:
        """What a compilation with these choices would resolve its options to."""
        return replace(
            self.base,
            host=host,
            device_spec=device,
            device=create_device(device),
            policy=policy,
            profiles=profiles,
        )
