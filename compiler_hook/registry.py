"""Lazy registries: devices, profilers, policies, timing models, workloads and commands, ours and those of plug-ins.

A distribution provides an implementation by an entry point in one of the groups below. Names are listed without
importing anything; an implementation is imported when it is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import torch_pim
from torch_pim.compiler_hook.cli.command import Command
from torch_pim.compiler_hook.errors import OptionError, RegistryError
from torch_pim.compiler_hook.protocols import Device, Profiler, TimingModel
from torch_pim.features.machines import DeviceSpec
from torch_pim.models.errors import did_you_mean

if TYPE_CHECKING:
    from torch_pim.models.policies import OnModelError, Policy

DISTRIBUTION = "torch-pim"
ANY_DEVICE = "emulated"
"""The device that stands in for every DeviceSpec that nobody registered by its name."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Provider:
    """One implementation that claims a name."""

    name: str
    target: str
    """`module:attribute`."""
    distribution: str
    """Name and version of the distribution that brings it."""
    load: Callable[[], Any]

    def __str__(self) -> str:
        return f"{self.target} of {self.distribution}"


@dataclass(frozen=True)  # without slots: calling Registry[T](...) sets an attribute of typing's
class Registry(Generic[T]):
    """The implementations of one kind, by name."""

    kind: str
    """What one of them is called in messages, e.g. `device`."""
    group: str
    """The entry-point group, e.g. `torch_pim.devices`."""
    built_in: Callable[[], Iterable[Provider]] = tuple
    """Providers that need no entry point; asked only when the registry is."""

    def providers(self) -> tuple[Provider, ...]:
        """Every claim, sorted by name; a name that appears twice is a clash."""
        found = [*self.built_in(), *(_from_entry_point(point) for point in entry_points(group=self.group))]
        return tuple(sorted(found, key=lambda provider: (provider.name, provider.distribution, provider.target)))

    def names(self) -> tuple[str, ...]:
        """All names, sorted. Imports no implementation and raises nothing for a clash."""
        return tuple(sorted({provider.name for provider in self.providers()}))

    def provider(self, name: str) -> Provider:
        """The one provider of a name; OptionError if there is none, RegistryError if there are several."""
        providers = self.providers()
        claims = [provider for provider in providers if provider.name == name]
        if not claims:
            known = {provider.name for provider in providers}
            raise OptionError(f"unknown {self.kind} {name!r}.{did_you_mean(name, known)}{_not_installed()}")
        if len(claims) > 1:
            raise RegistryError(
                f"{self.kind} {name!r} is claimed by {' and by '.join(map(str, claims))}; "
                f"uninstall one of them, or rename its entry point in group {self.group!r}"
            )
        return claims[0]

    def load(self, name: str) -> T:
        """Imports and returns an implementation; RegistryError if its module cannot be imported."""
        provider = self.provider(name)
        try:
            return cast(T, provider.load())
        except Exception as error:  # whatever somebody else's module raises while it is imported
            raise RegistryError(
                f"{self.kind} {name!r} ({provider}) cannot be loaded: {type(error).__name__}: {error}; "
                "install what it needs, or uninstall it"
            ) from error


class DeviceFactory(Protocol):
    """What a device entry point names: makes the device that a specification describes."""

    def __call__(self, spec: DeviceSpec) -> Device: ...


class PolicyMaker(Protocol):
    """Makes the policy of one name; see `create_policy` in torch_pim.models.policies for the arguments."""

    def __call__(self, *, bundle: Path | None, seed: int, on_model_error: OnModelError) -> Policy: ...


class PolicyRegistry(Registry[PolicyMaker]):
    """The policies of the models room and of plug-ins, whose factories take a PolicyRequest."""

    def load(self, name: str) -> PolicyMaker:
        """Imports the policy's factory; what is returned calls and checks it."""
        super().load(name)
        from torch_pim.models.policies import create_policy

        return functools.partial(create_policy, name)


def _from_entry_point(point: EntryPoint) -> Provider:
    origin = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"
    return Provider(point.name, point.value, origin, point.load)


def _own(name: str, target: str) -> Provider:
    return Provider(name, target, f"{DISTRIBUTION} {torch_pim.__version__}", EntryPoint(name, target, "").load)


def _own_policies() -> Sequence[Provider]:
    from torch_pim.models.policies.registry import BUILT_IN

    return [_own(name, f"{module}:create") for name, module in BUILT_IN.items()]


def _own_commands() -> Sequence[Provider]:
    return [_own("doctor", "torch_pim.compiler_hook.cli.doctor.command:COMMAND")]


def installed_version() -> str | None:
    """Version of the installed distribution; None in a bare checkout, whose entry points nobody knows."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return None


def _not_installed() -> str:
    if installed_version() is not None:
        return ""
    return f" {DISTRIBUTION} is imported but not installed, so its own plug-ins are unknown: run 'pip install -e .'"


devices: Registry[DeviceFactory] = Registry("device", "torch_pim.devices")
profilers: Registry[Callable[..., Profiler]] = Registry("profiler", "torch_pim.profilers")
policies = PolicyRegistry("policy", "torch_pim.policies", _own_policies)
timing_models: Registry[Callable[..., TimingModel]] = Registry("timing model", "torch_pim.timing_models")
workloads: Registry[Any] = Registry("workload collection", "torch_pim.workloads")
commands: Registry[Command] = Registry("command", "torch_pim.commands", _own_commands)

ALL_REGISTRIES: tuple[Registry[Any], ...] = (devices, profilers, policies, timing_models, workloads, commands)


def create_device(spec: DeviceSpec) -> Device:
    """The device registered under the specification's name, else the emulated one."""
    return devices.load(spec.name if spec.name in devices.names() else ANY_DEVICE)(spec)
