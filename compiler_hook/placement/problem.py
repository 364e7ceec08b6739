"""The question a policy is asked about one specialised program."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.outline.specialised_program import SpecialisedProgram
from torch_pim.compiler_hook.placement.data_flow import buffer_versions
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.placement import NestCall, PlacementProblem
from torch_pim.features.profile import HostProfile


def placement_problem(
    program: SpecialisedProgram,
    host: HostSpec,
    device: DeviceSpec,
    profiles: Mapping[str, HostProfile] | None = None,
    weights: Collection[int] = (),
) -> PlacementProblem:
    """`profiles` maps code hash to profile; one of another host than `host` is not used, nor one of a nest with
    dynamic sizes, since a profile does not say at which sizes it was taken.

    `weights` are the positions of the program's parameters that are resident model weights.
    """
    known = profiles or {}
    return PlacementProblem(
        nests=tuple(nest.loop_nest for nest in program.nests),
        calls=tuple(NestCall(call.nest, call.site) for call in program.calls),
        buffers=buffer_versions(program, weights),
        profiles=tuple(_usable(nest, known.get(nest.function.code_hash), host) for nest in program.nests),
        host=host,
        device=device,
    )


def _usable(nest: ConcreteNest, profile: HostProfile | None, host: HostSpec) -> HostProfile | None:
    fits = profile is not None and profile.host_id == host.identity and not nest.function.loop_nest.symbols
    return profile if fits else None
