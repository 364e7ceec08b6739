"""Torch-PIM from Python: `compile` a model, `compile_linalg` a module of another front end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch_mlir import ir

from torch_pim.compiler_hook.backend import compile_dynamo_graph, new_session
from torch_pim.compiler_hook.compiled_graph import CompiledGraph
from torch_pim.compiler_hook.errors import ShapeError
from torch_pim.compiler_hook.frontend.mlir_text import parse_linalg
from torch_pim.compiler_hook.graph_compiler import Session
from torch_pim.compiler_hook.lowered import lower_module
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.report.plan import Plan, plan_of
from torch_pim.compiler_hook.report.render import render_plan
from torch_pim.compiler_hook.target import resolve


class CompiledModel:
    """A model whose graphs run as placed loop nests; call it like the model."""

    def __init__(self, model: torch.nn.Module, session: Session, dynamic: bool | None) -> None:
        self.model = model
        self._session = session
        backend = lambda graph, inputs: compile_dynamo_graph(graph, inputs, session)  # noqa: E731
        # Recurrent layers are ordinary graphs to us; Dynamo leaves them out unless asked.
        with torch._dynamo.config.patch(allow_rnn=True):
            self._compiled = torch.compile(model, backend=backend, dynamic=dynamic)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        with torch._dynamo.config.patch(allow_rnn=True):
            return self._compiled(*arguments, **keywords)

    @property
    def plan(self) -> tuple[Plan, ...]:
        """One plan per graph and shape placed so far, in order of first call; empty before the first call."""
        return tuple(plan_of(placed) for graph in self._session.graphs for placed in graph.placed)

    def report(self) -> str:
        """What ran where and why, with the share of operators that run as compiled nests."""
        session = self._session
        if not session.nodes:
            return "nothing compiled yet: call the model once"
        parts = [
            f"graph {number}, shape {shape}: {render_plan(plan_of(placed))}"
            for number, graph in enumerate(session.graphs)
            for shape, placed in enumerate(graph.placed)
        ]
        parts.append(f"compiled operators: {100.0 * session.compiled_share:.1f} %")
        eager = [entry for fallback in session.fallbacks for entry in fallback.operators]
        parts += [f"in PyTorch eager: {entry.operator} ({entry.reason})" for entry in dict.fromkeys(eager)]
        return "\n".join(parts)


def compile(model: torch.nn.Module | ExportedProgram, *, dynamic: bool | None = None, **options: Any) -> CompiledModel:
    """Compiles a model; keyword options are those of CompileOptions (device, host, policy, bundle, profile, ...).

    Graphs are made at the first call, as with torch.compile; forward and backward both run as placed nests. Raises
    OptionError for an unknown option at once.
    """
    session = new_session(CompileOptions.from_mapping(options))
    module = model.module() if isinstance(model, ExportedProgram) else model
    return CompiledModel(module, session, dynamic)


class LinalgFunction:
    """One public function of a module: takes numpy arrays, tensors and numbers, returns its results as a list.

    Results are of the kind of the first array argument: numpy arrays for numpy arguments, tensors otherwise.
    """

    def __init__(self, compiled: CompiledGraph) -> None:
        self._compiled = compiled
        self.name = compiled.lowered.program.name

    def __call__(self, *arguments: Any) -> list[Any]:
        tensors = [self._convert(position, argument) for position, argument in enumerate(arguments)]
        results = self._compiled(tensors)
        if any(isinstance(argument, np.ndarray) for argument in arguments):
            return [r.numpy() if isinstance(r, torch.Tensor) else r for r in results]
        return list(results)

    @property
    def plan(self) -> tuple[Plan, ...]:
        """One plan per shape placed so far."""
        return tuple(plan_of(placed) for placed in self._compiled.placed)

    def _convert(self, position: int, argument: Any) -> torch.Tensor | int | float:
        if isinstance(argument, np.generic):
            argument = argument.item()
        if isinstance(argument, np.ndarray):
            # Tensors have no negative strides, and a read-only array would make PyTorch warn.
            usable = argument.flags.writeable and all(stride >= 0 for stride in argument.strides)
            return torch.from_numpy(argument if usable else argument.copy())
        if isinstance(argument, torch.Tensor | int | float):
            return argument
        raise ShapeError(
            f"{self.name}: argument {position} is a {type(argument).__name__}; expected a numpy array, tensor or number"
        )


def compile_linalg(source: str | Path | ir.Module, **options: Any) -> Mapping[str, LinalgFunction]:
    """Public function name -> callable, for a linalg-on-tensors module given as text, `.mlir` path or object.

    Keyword options are those of CompileOptions. Raises FrontendError for text that is no MLIR and LoweringError for
    a module that does not reach loop nests.
    """
    target = resolve(CompileOptions.from_mapping(options))
    compiled = [CompiledGraph(lowered, target) for lowered in lower_module(parse_linalg(source))]
    for graph in compiled:
        graph.compile()
    return {graph.lowered.program.name: LinalgFunction(graph) for graph in compiled}


__all__: Sequence[str] = ("CompiledModel", "LinalgFunction", "compile", "compile_linalg")
