"""Which operators of a graph do not lower, and the split of the graph into compiled and eager parts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.split_module import split_module

from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.compiler_hook.frontend.graph_import import operator_name
from torch_pim.compiler_hook.lowered import lower_graph

_known: dict[tuple[str, ...], str | None] = {}


@dataclass(frozen=True, slots=True)
class Unsupported:
    """An operator that does not lower, and the first reason why."""

    operator: str
    reason: str


def unsupported_nodes(graph: Graph) -> dict[str, Unsupported]:
    """Node name -> why it does not lower on its own; each operator and signature is tried once per process."""
    found: dict[str, Unsupported] = {}
    for node in graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        if not _makes_tensors(node):
            # Sizes and checks of sizes: compiled parts evaluate the ones and leave out the others.
            continue
        if torch.Tag.nondeterministic_seeded in node.target.tags:
            found[node.name] = Unsupported(operator_name(node), "its random numbers come from PyTorch's generator")
            continue
        reason = _reason(node)
        if reason is not None:
            found[node.name] = Unsupported(operator_name(node), reason)
    return found


def has_random_operators(graph: Graph) -> bool:
    """True when a node draws from PyTorch's generator, which compiled code has no access to."""
    return any(
        isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags
        for node in graph.nodes
    )


def split_graph(
    module: GraphModule, unsupported: dict[str, Unsupported], compile_part: Callable[[GraphModule], Callable[..., Any]]
) -> GraphModule:
    """The graph as alternating parts in its order; parts without unsupported nodes go through `compile_part`."""
    part = 0
    previous: bool | None = None
    parts: dict[str, int] = {}
    eager: set[int] = set()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        follows_tuple = node.op == "call_function" and node.target.__name__ == "getitem"
        state = parts[node.args[0].name] in eager if follows_tuple else node.name in unsupported
        if state != previous:
            part += 1
            previous = state
        parts[node.name] = part
        if state:
            eager.add(part)
    split = split_module(module, None, lambda node: parts[node.name], keep_original_order=True)  # type: ignore[arg-type]
    for name, child in list(split.named_children()):
        number = int(name.removeprefix("submod_"))
        if number not in eager and isinstance(child, GraphModule):
            setattr(split, name, _Part(compile_part(child)))
    split.recompile()
    return split


class _Part(torch.nn.Module):
    """A compiled part behind the interface of a submodule."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def _makes_tensors(node: Node) -> bool:
    value = node.meta.get("val")
    return any(isinstance(part, torch.Tensor) for part in (value if isinstance(value, (tuple, list)) else (value,)))


def _reason(node: Node) -> str | None:
    key = (operator_name(node), *(_signature(a) for a in (*node.args, *node.kwargs.items())))
    if key not in _known:
        try:
            KernelLibrary.compile(lower_graph(_alone(node)).program.functions)
            _known[key] = None
        except TorchPimError as error:
            # MLIR appends the printed operation, which says nothing more to a reader.
            _known[key] = str(error).splitlines()[0].partition(": %")[0]
    return _known[key]


def _signature(value: Any) -> str:
    if isinstance(value, Node):
        meta = value.meta.get("val")
        return f"{meta.dtype}{tuple(meta.shape)}" if isinstance(meta, torch.Tensor) else type(meta).__name__
    if isinstance(value, (tuple, list)):
        return "[" + ",".join(_signature(v) for v in value) + "]"
    return repr(value)


def _alone(node: Node) -> Graph:
    """A graph with this node only, its inputs as placeholders and all its tensors as results."""
    graph = Graph()
    inputs: dict[Node, Node] = {}

    def placeholder(source: Node) -> Node:
        if source not in inputs:
            inputs[source] = graph.placeholder(f"input_{len(inputs)}")
            inputs[source].meta = dict(source.meta)
        return inputs[source]

    torch.fx.node.map_arg((node.args, node.kwargs), placeholder)
    copy = graph.node_copy(node, lambda source: inputs[source])
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        outputs = []
        for position, part in enumerate(value):
            if isinstance(part, torch.Tensor):
                with graph.inserting_after(copy):
                    item = graph.call_function(operator.getitem, (copy, position))
                item.meta["val"] = part
                outputs.append(item)
        graph.output(tuple(outputs))
    else:
        graph.output((copy,))
    return graph
