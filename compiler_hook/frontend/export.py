"""nn.Module or ExportedProgram to a decomposed, functional graph; on fake tensors as well as on real ones."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind

from torch_pim.compiler_hook.errors import FrontendError
from torch_pim.compiler_hook.frontend.decompositions import decomposition_table
from torch_pim.compiler_hook.frontend.tracing import decomposable_tracing

# torch.export keeps module-level state and asserts when two threads use it.
_EXPORT_LOCK = threading.Lock()
_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """A functional ATen graph whose placeholders are weights, buffers, constants and inputs, in graph order."""

    graph: torch.fx.Graph
    weights: frozenset[int]
    """Positions of placeholders that are parameters, buffers or constants of the model."""


def export_graph(
    model: torch.nn.Module | ExportedProgram,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedGraph:
    """Decomposed graph of a model called with example arguments; an ExportedProgram brings its own.

    Weights and arguments may be fake tensors: then nothing is allocated. Numbers among the arguments become constants.
    Mutations of inputs and buffers become extra results, which come first. Raises FrontendError with torch.export's
    reason.
    """
    with _EXPORT_LOCK, ExitStack() as stack:
        stack.enter_context(decomposable_tracing())
        try:
            program = (
                model
                if isinstance(model, ExportedProgram)
                else _export(model, arguments, keywords, dynamic_shapes, stack)
            )
            program = program.run_decompositions(decomposition_table())
        except Exception as error:  # torch.export raises many types
            raise FrontendError(f"torch.export failed: {type(error).__name__}: {error}") from error
    inputs = list(zip(program.graph_signature.input_specs, program.graph.find_nodes(op="placeholder"), strict=True))
    for spec, node in inputs:
        # The value is part of the graph already.
        if isinstance(spec.arg, ConstantArgument):
            program.graph.erase_node(node)
    kinds = [spec.kind for spec, _ in inputs if not isinstance(spec.arg, ConstantArgument)]
    return ExportedGraph(program.graph, frozenset(p for p, kind in enumerate(kinds) if kind in _WEIGHTS))


def _export(
    model: torch.nn.Module,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    stack: ExitStack,
) -> ExportedProgram:
    given = (tuple(arguments), dict(keywords or {}))
    mode = _fake_mode(model, given)
    if mode is not None:
        stack.enter_context(mode)
    positional, named = _distinct(given)
    return torch.export.export(model, positional, named, dynamic_shapes=dynamic_shapes, strict=False)


def _fake_mode(model: torch.nn.Module, given: Any) -> FakeTensorMode | None:
    leaves = [*model.parameters(), *model.buffers(), *torch.utils._pytree.tree_leaves(given)]
    return next((leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)), None)


def _distinct(given: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """torch.export merges identical example tensors into one input: give each place its own."""
    seen: set[int] = set()

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) in seen:
            leaf = leaf.clone()
        seen.add(id(leaf))
        return leaf

    result: tuple[tuple[Any, ...], dict[str, Any]] = torch.utils._pytree.tree_map(own, given)
    return result


def load_exported(path: Path) -> ExportedProgram:
    """Reads a `.pt2` file. Such a file is code: load only what you trust. FrontendError if it cannot be read."""
    if not path.is_file():
        raise FrontendError(f"{path}: no such file; expected a model saved by torch.export.save")
    try:
        return torch.export.load(path)
    except Exception as error:  # torch.export raises many types
        raise FrontendError(f"{path}: not a readable exported program: {error}") from error
