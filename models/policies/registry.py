"""Policies by name: the built-in ones, loaded on first use, and plug-ins from entry points."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from torch_pim.models.errors import PolicyError, did_you_mean
from torch_pim.models.policies.policy import PolicyFactory

GROUP = "torch_pim.policies"
"""Entry-point group of plug-ins: `name = "package.module:factory"`, the factory taking a PolicyRequest."""

BUILT_IN = {
    "learned": "torch_pim.models.policies.learned",
    "learned+residency": "torch_pim.models.policies.learned_residency",
    "cost-model": "torch_pim.models.policies.cost_model",
    "analytic": "torch_pim.models.policies.analytic",
    "host": "torch_pim.models.policies.host",
    "pim": "torch_pim.models.policies.pim",
    "random": "torch_pim.models.policies.random",
}
"""Name -> module with a function `create`, which is the factory."""


def policy_names() -> tuple[str, ...]:
    """Built-in names in order of use, then those of plug-ins, sorted. Raises PolicyError for a name given twice."""
    return (*BUILT_IN, *sorted(_plug_ins()))


def policy_factory(name: str) -> PolicyFactory:
    """The factory behind a name; raises PolicyError for an unknown name or a plug-in that cannot be loaded."""
    plug_ins = _plug_ins()
    if name in BUILT_IN:
        factory: PolicyFactory = import_module(BUILT_IN[name]).create
        return factory
    if name not in plug_ins:
        raise PolicyError(f"unknown policy {name!r}.{did_you_mean(name, policy_names())}")
    entry = plug_ins[name]
    try:
        loaded = entry.load()
    except Exception as error:  # a plug-in may fail in any way; the user needs to know which one
        raise PolicyError(f"policy {name!r} of {_provider(entry)} cannot be loaded: {error!r}") from error
    if not callable(loaded):
        raise PolicyError(f"policy {name!r} of {_provider(entry)} is {loaded!r}: expected a factory function")
    plug_in: PolicyFactory = loaded
    return plug_in


def _plug_ins() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        if entry.name in BUILT_IN:
            raise PolicyError(
                f"two providers of policy {entry.name!r}: torch-pim itself and {_provider(entry)}; rename the latter"
            )
        other = found.setdefault(entry.name, entry)
        if other != entry:
            raise PolicyError(
                f"two providers of policy {entry.name!r}: {_provider(other)} and {_provider(entry)}; uninstall one"
            )
    return found


def _provider(entry: EntryPoint) -> str:
    distribution = entry.dist.name if entry.dist is not None else "an unknown distribution"
    return f"{distribution} ({entry.value})"
