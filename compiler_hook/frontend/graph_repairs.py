"""Nodes of an FX graph that Torch-MLIR would take wrongly, replaced by equals. Changes the graph in place."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

aten = torch.ops.aten


def repair(graph: Graph) -> None:
    """Comparisons of a tensor with itself, which would fold to true for NaN too; strides of empty tensors."""
    for node in list(graph.nodes):
        if node.target == aten.eq.Tensor and node.args[0] is node.args[1]:
            _equals_itself(graph, node)
        elif node.target == aten.empty_strided.default:
            # Of a tensor without values and without elements only the shape matters.
            node.target, node.args = aten.empty.memory_format, node.args[:1]


def _equals_itself(graph: Graph, node: Node) -> None:
    with graph.inserting_before(node):
        is_nan = graph.call_function(aten.isnan.default, node.args[:1])
    is_nan.meta["val"] = node.meta["val"]
    node.target, node.args = aten.logical_not.default, (is_nan,)
