"""A model or module lowered to unique nests and a program that calls them: what can be planned and compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch.export import ExportedProgram
from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError, ShapeError
from torch_pim.compiler_hook.frontend.export import export_graph
from torch_pim.compiler_hook.frontend.graph_import import graph_to_linalg
from torch_pim.compiler_hook.lowering import linalg_to_loops
from torch_pim.compiler_hook.lowering.passes import functions
from torch_pim.compiler_hook.outline.layout import Layout, contiguous
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest, MemRefParameter
from torch_pim.compiler_hook.outline.outliner import outline
from torch_pim.compiler_hook.outline.program import Program
from torch_pim.compiler_hook.outline.specialise import specialise
from torch_pim.compiler_hook.outline.specialised_program import ArgumentLayout, SpecialisedProgram
from torch_pim.compiler_hook.placement.problem import placement_problem
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.placement import PlacementProblem
from torch_pim.features.profile import HostProfile

T = TypeVar("T")
REMEMBERED_SHAPES = 256


@dataclass(frozen=True)
class LoweredProgram:
    """One function in canonical form, with its resident weights marked."""

    program: Program
    weights: frozenset[int] = frozenset()
    """Positions of parameters that are weights of the model."""
    _specialised: dict[tuple[ArgumentLayout, ...], SpecialisedProgram] = field(default_factory=dict, compare=False)

    @property
    def is_static(self) -> bool:
        return all(isinstance(p, MemRefParameter) and None not in p.shape for p in self.program.parameters)

    def static_arguments(self) -> tuple[Layout, ...]:
        """Contiguous layouts of the parameters; ShapeError when a size is dynamic."""
        made = []
        for position, parameter in enumerate(self.program.parameters):
            shape = parameter.shape if isinstance(parameter, MemRefParameter) else (None,)
            if None in shape:
                raise ShapeError(
                    f"{self.program.name}: argument {position} has dynamic dimensions; give concrete argument layouts"
                )
            made.append(contiguous([s for s in shape if s is not None]))
        return tuple(made)

    def specialised(self, arguments: Sequence[ArgumentLayout] | None = None) -> SpecialisedProgram:
        """The program at these argument layouts (default: its static ones); remembered."""
        key = tuple(arguments) if arguments is not None else self.static_arguments()
        found = self._specialised.get(key)
        if found is None:
            found = remember(self._specialised, key, specialise(self.program, key))
        return found

    def concrete_nests(self, arguments: Sequence[ArgumentLayout] | None = None) -> tuple[ConcreteNest, ...]:
        """Unique nests at concrete shapes, aligned with `problem(...).nests`."""
        return self.specialised(arguments).nests

    def problem(
        self,
        host: HostSpec,
        device: DeviceSpec,
        profiles: Mapping[str, HostProfile] | None = None,
        arguments: Sequence[ArgumentLayout] | None = None,
    ) -> PlacementProblem:
        """The placement problem; `profiles` maps code hash to profile."""
        return placement_problem(self.specialised(arguments), host, device, profiles, self.weights)


def lower_module(module: ir.Module, weights: Collection[int] = ()) -> tuple[LoweredProgram, ...]:
    """Every public function of a linalg-on-tensors module; the module is consumed."""
    linalg_to_loops(module)
    with module.context:
        lowered = tuple(LoweredProgram(outline(f), frozenset(weights)) for f in functions(module) if _is_public(f))
    if not lowered:
        raise LoweringError("the module has no public function with a body")
    return lowered


def lower_graph(graph: torch.fx.Graph, weights: Collection[int] = ()) -> LoweredProgram:
    """A functional ATen graph; `weights` are positions of placeholders."""
    return lower_module(graph_to_linalg(graph), weights)[0]


def lower_model(
    model: torch.nn.Module | ExportedProgram,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> LoweredProgram:
    """A model called with example arguments. Weights become parameters; with fake tensors nothing is allocated."""
    exported = export_graph(model, arguments, keywords, dynamic_shapes)
    return lower_graph(exported.graph, exported.weights)


def _is_public(function: ir.OpView) -> bool:
    attributes = function.operation.attributes
    return "sym_visibility" not in attributes or ir.StringAttr(attributes["sym_visibility"]).value == "public"


def remember(known: dict[tuple[ArgumentLayout, ...], T], key: tuple[ArgumentLayout, ...], value: T) -> T:
    """Stores the value; shapes and numbers may vary without end, so the oldest goes when there are too many."""
    known[key] = value
    if len(known) > REMEMBERED_SHAPES:
        known.pop(next(iter(known)), None)
    return value
