"""A lowered graph that runs: compiled once, placed at the first call of each shape."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.errors import ShapeError
from torch_pim.compiler_hook.lowered import LoweredProgram, remember
from torch_pim.compiler_hook.outline.layout import contiguous
from torch_pim.compiler_hook.outline.memref_types import TORCH_TYPES
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter
from torch_pim.compiler_hook.outline.specialised_program import ArgumentLayout, SpecialisedProgram
from torch_pim.compiler_hook.runtime.executor import Executor
from torch_pim.compiler_hook.target import Target
from torch_pim.features.placement import Decision, Placement, PlacementProblem


@dataclass(frozen=True)
class PlacedProgram:
    """One shape of a graph with its decisions."""

    specialised: SpecialisedProgram
    problem: PlacementProblem
    placement: Placement
    weights: frozenset[int] = frozenset()
    """Positions of parameters that are resident model weights."""


class CompiledGraph:
    """Callable on tensors and numbers in the order of the program's parameters; results in program order.

    Raises ShapeError when an argument has another type or another static size than what was compiled.
    """

    def __init__(self, lowered: LoweredProgram, target: Target) -> None:
        self.lowered = lowered
        self.target = target
        self._library: KernelLibrary | None = None
        self._executors: dict[tuple[ArgumentLayout, ...], Executor] = {}
        self._placed: dict[tuple[ArgumentLayout, ...], PlacedProgram] = {}
        self._lock = threading.Lock()
        self._types = tuple(
            TORCH_TYPES[p.element_type] if isinstance(p, MemRefParameter) else None for p in lowered.program.parameters
        )

    def compile(self) -> None:
        """Compiles every unique nest now instead of at the first call."""
        if self.lowered.is_static:
            # What cannot be carried out is an error here, where the caller may still choose another way.
            self.lowered.specialised()
        with self._lock:
            if self._library is None:
                self._library = KernelLibrary.compile(self.lowered.program.functions)

    def place(self, layouts: Sequence[ArgumentLayout] | None = None) -> PlacedProgram:
        """Decisions for arguments of these layouts (default: the static ones)."""
        key = tuple(layouts) if layouts is not None else self.lowered.static_arguments()
        found = self._placed.get(key)
        if found is None:
            specialised = self.lowered.specialised(key)
            target = self.target
            problem = self.lowered.problem(target.host, target.device_spec, target.profiles, key)
            placement = _within_device(target, specialised, target.policy.place(problem))
            found = PlacedProgram(specialised, problem, placement, self.lowered.weights)
            remember(self._placed, key, found)
        return found

    @property
    def placed(self) -> tuple[PlacedProgram, ...]:
        """Every shape placed so far (of many, the latest), in order of first call."""
        return tuple(self._placed.values())

    def __call__(self, arguments: Sequence[torch.Tensor | int | float]) -> list[torch.Tensor | int | float]:
        dense = [self._dense(position, argument) for position, argument in enumerate(arguments)]
        key = tuple(contiguous(a.shape) if isinstance(a, torch.Tensor) else a for a in dense)
        executor = self._executors.get(key)
        if executor is None:
            executor = self._executor(key)
        return executor(dense)

    def _executor(self, key: tuple[ArgumentLayout, ...]) -> Executor:
        self.compile()
        with self._lock:
            executor = self._executors.get(key)
            if executor is None:
                placed = self.place(key)
                assert self._library is not None
                executor = Executor(
                    placed.specialised, self._library, placed.placement.sides(), self.target.device, self.target.pool
                )
                remember(self._executors, key, executor)
        return executor

    def _dense(self, position: int, argument: torch.Tensor | int | float) -> torch.Tensor | int | float:
        if not isinstance(argument, torch.Tensor):
            return argument
        expected = self._types[position] if position < len(self._types) else None
        what = f"{self.lowered.program.name}: argument {position}"
        if argument.device.type != "cpu" or argument.layout != torch.strided:
            raise ShapeError(f"{what} is on {argument.device} in layout {argument.layout}; expected a dense CPU tensor")
        if argument.dtype == torch.uint8 and expected == torch.int8:
            argument = argument.view(torch.int8)
        if expected is not None and argument.dtype != expected:
            raise ShapeError(f"{what} is {argument.dtype}, compiled for {expected}")
        return argument.detach().resolve_neg().contiguous()


def _within_device(target: Target, program: SpecialisedProgram, placement: Placement) -> Placement:
    """Moves to the host what the device itself refuses, with the device's reason."""
    refused = {number: target.device.supports(nest) for number, nest in enumerate(program.nests)}
    decisions = tuple(
        _forced(decision, reason) if decision.side == "pim" and (reason := refused[call.nest]) is not None else decision
        for decision, call in zip(placement.decisions, program.calls, strict=True)
    )
    return replace(placement, decisions=decisions)


def _forced(decision: Decision, reason: str) -> Decision:
    return replace(decision, side="host", stage="forced", reason=f"the device cannot run it: {reason}")
