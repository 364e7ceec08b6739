"""The plan of one model on one pair of machines, with everything that it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch_pim.compiler_hook.compiled_graph import CompiledGraph, PlacedProgram
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.report.plan import Plan, plan_of
from torch_pim.compiler_hook.report.render import plan_json
from torch_pim.compiler_hook.target import Target, resolve
from torch_pim.experiments.lowered_model import LoweredModel
from torch_pim.experiments.profile_file import usable_profiles
from torch_pim.experiments.provenance import bundle_json, machine_json, versions


@dataclass(frozen=True)
class PlannedModel:
    """A model, its placement, and the options that led to it."""

    model: LoweredModel
    target: Target
    placed: PlacedProgram

    @property
    def plan(self) -> Plan:
        """Named by the model; every call with its decision and reason."""
        return replace(plan_of(self.placed), name=self.model.title)

    @property
    def profiled_nests(self) -> int:
        """Unique nests of which the policy was given a profile."""
        return sum(profile is not None for profile in self.placed.problem.profiles)

    def to_json(self) -> dict[str, Any]:
        """Plain values, equal for equal inputs."""
        options = self.target.options
        return {
            "model": self.model.to_json(),
            "plan": plan_json(self.plan),
            "host": machine_json(self.target.host),
            "device": machine_json(self.target.device_spec),
            "profile": None if options.profile is None else str(options.profile),
            "profiled_nests": self.profiled_nests,
            "bundle": bundle_json(options.bundle),
            "versions": versions(),
        }


def plan_model(options: CompileOptions, lower: Callable[[], LoweredModel]) -> PlannedModel:
    """Places a model as a compilation with these options would.

    `lower` is called after the options have been checked, because it takes long. Raises OptionError if the profiles
    of the options' file fit no nest.
    """
    target = resolve(options)
    model = lower()
    if options.profile is not None:
        hashes = (nest.function.code_hash for nest in model.lowered.concrete_nests())
        usable_profiles(options.profile, hashes, target.host)
    return PlannedModel(model, target, CompiledGraph(model.lowered, target).place())
