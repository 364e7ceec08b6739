"""One FX graph of AOTAutograd to a function with the graph's calling convention."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node

from torch_pim.compiler_hook.compiled_graph import CompiledGraph
from torch_pim.compiler_hook.errors import CodegenError, FrontendError, LoweringError
from torch_pim.compiler_hook.graph_outputs import GraphOutputs
from torch_pim.compiler_hook.lowered import lower_graph
from torch_pim.compiler_hook.partition import Unsupported, has_random_operators, split_graph, unsupported_nodes
from torch_pim.compiler_hook.target import Target

GraphFunction = Callable[..., Any]


class FallbackWarning(UserWarning):
    """Part of a model runs in PyTorch eager; the message names the operators."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """What of one graph runs in eager."""

    operators: tuple[Unsupported, ...]
    eager_nodes: int
    total_nodes: int


@dataclass
class Session:
    """What one model's compilation collects, over all its graphs."""

    target: Target
    graphs: list[CompiledGraph]
    fallbacks: list[Fallback]
    nodes: int = 0

    @property
    def compiled_share(self) -> float:
        """Share of the operators that run as compiled nests."""
        eager = sum(fallback.eager_nodes for fallback in self.fallbacks)
        return 1.0 - eager / self.nodes if self.nodes else 1.0


def compile_graph(module: GraphModule, session: Session, weights: Collection[str] = ()) -> GraphFunction:
    """A function of the graph's inputs that returns its outputs as a list.

    `weights` are names of placeholders that hold model weights. An operator that does not lower runs in eager, with
    one FallbackWarning; everything else stays compiled.
    """
    total = sum(_is_operator(node) for node in module.graph.nodes)
    session.nodes += total
    if has_random_operators(module.graph):
        return _partly_eager(module, session, weights, unsupported_nodes(module.graph), total)
    try:
        return _compiled(module, session, weights)
    except (FrontendError, LoweringError, CodegenError) as error:
        unsupported = unsupported_nodes(module.graph)
        if not unsupported:
            return _all_eager(module, session, total, error)
        return _partly_eager(module, session, weights, unsupported, total)


def _compiled(module: GraphModule, session: Session, weights: Collection[str]) -> GraphFunction:
    outputs = GraphOutputs(module)
    if not outputs.computed:
        return lambda *arguments: outputs(arguments, ())
    graph, constants = _graph_with_outputs(module, outputs.computed)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    first_constant = len(placeholders) - len(constants)
    positions = {p for p, node in enumerate(placeholders) if node.name in weights or p >= first_constant}
    compiled = CompiledGraph(lower_graph(graph, positions), session.target)
    compiled.compile()
    session.graphs.append(compiled)
    return lambda *arguments: outputs(arguments, compiled((*arguments, *constants)))


def _is_operator(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def _graph_with_outputs(module: GraphModule, tensors: Sequence[Node]) -> tuple[torch.fx.Graph, list[torch.Tensor]]:
    """A copy of the graph that returns the tensors only, and the constants that its last placeholders stand for.

    Dead code goes, placeholders stay; tensors that the graph reads from its module become arguments.
    """
    copies: dict[Node, Node] = {}
    graph = torch.fx.Graph()
    graph.graph_copy(module.graph, copies)
    for original, copy in copies.items():
        copy.meta = dict(original.meta)
    graph.output(tuple(copies[node] for node in tensors))
    graph.eliminate_dead_code(is_impure_node=lambda node: node.op in ("placeholder", "output"))
    constants: list[torch.Tensor] = []
    mode = FakeTensorMode()
    last = next((node for node in reversed(graph.nodes) if node.op == "placeholder"), None)
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        value = functools.reduce(getattr, str(node.target).split("."), module)
        assert isinstance(value, torch.Tensor)
        with graph.inserting_before(node) if last is None else graph.inserting_after(last):
            argument = graph.placeholder(f"constant_{len(constants)}")
        # The importer takes types from fake tensors only.
        argument.meta["val"] = mode.from_tensor(value)
        node.replace_all_uses_with(argument)
        graph.erase_node(node)
        constants.append(value)
        last = argument
    return graph, constants


def _partly_eager(
    module: GraphModule, session: Session, weights: Collection[str], unsupported: dict[str, Unsupported], total: int
) -> GraphFunction:
    distinct = {entry.operator: entry for entry in unsupported.values()}
    described = "; ".join(f"{name} ({entry.reason})" for name, entry in distinct.items())
    warnings.warn(f"runs in PyTorch eager: {described}", FallbackWarning, stacklevel=2)
    session.fallbacks.append(Fallback(tuple(distinct.values()), len(unsupported), total))
    inner = Session(session.target, session.graphs, session.fallbacks)

    def part(child: GraphModule) -> Callable[..., Any]:
        single = not isinstance(next(n for n in reversed(child.graph.nodes) if n.op == "output").args[0], (tuple, list))
        function = compile_graph(child, inner, weights)
        return (lambda *arguments: function(*arguments)[0]) if single else (lambda *a: tuple(function(*a)))

    split = split_graph(module, unsupported, part)

    def run(*arguments: Any) -> list[Any]:
        result = split(*arguments)
        return list(result) if isinstance(result, (tuple, list)) else [result]

    return run


def _all_eager(module: GraphModule, session: Session, total: int, error: Exception) -> GraphFunction:
    reason = str(error).splitlines()[0]
    operators = sorted({str(node.target) for node in module.graph.nodes if _is_operator(node)})
    warnings.warn(
        f"a whole graph runs in PyTorch eager, because {reason} (operators: {', '.join(operators)})",
        FallbackWarning,
        stacklevel=2,
    )
    session.fallbacks.append(Fallback((Unsupported("whole graph", reason),), total, total))

    def run(*arguments: Any) -> list[Any]:
        result = module(*arguments)
        return list(result) if isinstance(result, (tuple, list)) else [result]

    return run
