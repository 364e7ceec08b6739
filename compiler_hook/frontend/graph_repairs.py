"""Nodes of an FX graph that Torch-MLIR would take wrongly, replaced by equals. Changes the graph in place."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_pim.compiler_hook.errors import FrontendError

aten = torch.ops.aten

_FLOAT_ONLY = (aten.max_pool3d.default, aten.max_pool3d_with_indices.default)
_UPDATES = (
    aten.scatter.src, aten.scatter.value, aten.scatter_add.default, aten.scatter_reduce.two, aten.index_add.default,
    aten.index_copy.default, aten.index_fill.int_Scalar, aten.index_put.default, aten._unsafe_index_put.default,
)  # fmt: skip
"""Operators that return their first argument with some elements changed."""
_ALONG_AN_AXIS = (aten.amax.default, aten.amin.default, aten.cumsum.default, aten.cumprod.default)
"""Operators that do nothing to a tensor without dimensions."""


def repair(graph: Graph) -> None:
    """Raises FrontendError for what would end the process in native code.

    Mends comparisons of a tensor with itself, which would fold to true for NaN too; views that mix dynamic sizes, which
    would be paired by position; tensors without elements, on which native passes divide by zero; and what has no
    lowering although it does nothing.
    """
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        value = node.meta.get("val")
        first: Any = node.args[0].meta.get("val") if node.args and isinstance(node.args[0], Node) else None
        if node.target in _FLOAT_ONLY and not first.dtype.is_floating_point:
            raise FrontendError(f"{node.target} of integers has no lowering")
        if _is_empty(value):
            _replace(node, aten.full.default, [list(value.shape), 0], dtype=value.dtype, device=value.device)
        elif node.target in _UPDATES and any(_is_empty(n.meta.get("val")) for n in node.all_input_nodes[1:]):
            _replace(node, aten.clone.default, node.args[:1])
        elif node.target == torch.ops.prims.copy_strided.default:
            # Strides are no part of a value.
            _replace(node, aten.clone.default, node.args[:1])
        elif node.target in _ALONG_AN_AXIS and first.dim() == 0 and first.dtype == value.dtype:
            _replace(node, aten.clone.default, node.args[:1])
        elif node.target == aten.eq.Tensor and node.args[0] is node.args[1]:
            with graph.inserting_before(node):
                is_nan = graph.call_function(aten.isnan.default, node.args[:1])
            is_nan.meta["val"] = value
            _replace(node, aten.logical_not.default, [is_nan])
        elif node.target is torch.sym_sum:
            _replace_sum(graph, node)
        elif node.target is operator.pow and node.args[1] == 2:
            _replace(node, operator.mul, [node.args[0], node.args[0]])
        elif node.target == aten.view.default and _runs(first.shape) != _runs(value.shape):
            with graph.inserting_before(node):
                flat = graph.call_function(aten.view.default, (node.args[0], [-1]))
            flat.meta["val"] = first.reshape(-1)
            node.replace_input_with(node.args[0], flat)


def _replace_sum(graph: Graph, node: Node) -> None:
    """The importer knows sums of two sizes only."""
    parts: Any = node.args[0]
    first, *others = parts
    for other in others:
        with graph.inserting_before(node):
            total = graph.call_function(operator.add, (first, other))
        values = [part.meta["val"] if isinstance(part, Node) else part for part in (first, other)]
        total.meta["val"] = values[0] + values[1]
        first = total
    node.replace_all_uses_with(first)
    graph.erase_node(node)


def _runs(shape: torch.Size) -> list[str | int]:
    """Dynamic sizes by their expressions, and the products of the static sizes between them."""
    found: list[str | int] = [1]
    for size in shape:
        if isinstance(size, int):
            found[-1] *= size
        else:
            found += [str(size), 1]
    return found


def _is_empty(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and any(isinstance(size, int) and size == 0 for size in value.shape)


def _replace(node: Node, target: Any, arguments: Any, **keywords: Any) -> None:
    node.target, node.args, node.kwargs = target, tuple(arguments), keywords
