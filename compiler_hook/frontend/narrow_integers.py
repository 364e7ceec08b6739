"""8-bit integers (and truth values in orders and sums) go through 32 bits.

Torch-MLIR takes unsigned bytes for signed ones in arithmetic, ends the process on some operations of bytes and numbers,
and has no sums of truth values. Copies, views and elementwise operations that are right as they are stay in 8 bits.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

aten = torch.ops.aten

_BYTES = (torch.int8, torch.uint8)
_ELEMENTWISE = (
    aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.bitwise_and.Tensor, aten.bitwise_or.Tensor,
    aten.bitwise_xor.Tensor,
)  # fmt: skip
"""Right on bytes if both operands are tensors of one type."""
_MOVES = (
    aten._to_copy.default, aten.bitwise_not.default, aten.clone.default, aten.embedding.default,
    aten.expand.default, aten.flip.default, aten.gather.default, aten.index.Tensor, aten.index_select.default,
    aten.permute.default, aten.select.int, aten.slice.Tensor, aten.squeeze.dims, aten.unsqueeze.default,
    aten.view.default,
)  # fmt: skip
"""Right on bytes."""
_JOINS = (aten.cat.default, aten.where.self)
"""Right on bytes if nothing is promoted."""
_ON_TRUTH_VALUES = (
    aten.sort.default, aten.topk.default, aten.scatter_add.default, aten.scatter_reduce.two, aten.index_add.default,
    aten.index_put.default,
)  # fmt: skip


def widen_narrow_integers(graph: Graph) -> None:
    """Converts inputs of such operators to i32 and their results back, in place. Nodes carry fake tensors as `val`."""
    for node in list(graph.nodes):
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            narrow = (*_BYTES, torch.bool) if node.target in _ON_TRUTH_VALUES else _BYTES
            touched = [*node.all_input_nodes, node]
            # Assertions about a tensor have no value.
            has_value = node.meta.get("val") is not None
            if has_value and any(dtype in narrow for n in touched for dtype in _dtypes(n)) and not _is_exact(node):
                _widen(graph, node, narrow)


def _dtypes(node: Node) -> list[torch.dtype]:
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return [part.dtype for part in parts if isinstance(part, torch.Tensor)]


def _is_exact(node: Node) -> bool:
    if node.target in _MOVES:
        return True
    types = {dtype for n in (*node.all_input_nodes, node) for dtype in _dtypes(n)}
    if node.target in _JOINS:
        return len(types - {torch.bool}) == 1
    # A number as second operand, a factor, or another type to promote to would take the way that is wrong.
    return node.target in _ELEMENTWISE and isinstance(node.args[1], Node) and not node.kwargs and len(types) == 1


def _widen(graph: Graph, node: Node, narrow: tuple[torch.dtype, ...]) -> None:
    expected = node.meta["val"]
    for source in node.all_input_nodes:
        if any(dtype in narrow for dtype in _dtypes(source)) and isinstance(source.meta["val"], torch.Tensor):
            with graph.inserting_before(node):
                node.replace_input_with(source, _cast(graph, source, torch.int32))
    if node.kwargs.get("dtype") in narrow:
        node.kwargs = {**node.kwargs, "dtype": torch.int32}
    arguments, keywords = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    # The mode of the graph, for an operator that makes a tensor from nothing.
    with _first_tensor(expected).fake_mode:
        _set_value(node, node.target(*arguments, **keywords))  # type: ignore[operator]
    if isinstance(expected, torch.Tensor):
        _cast_back(graph, node, expected)
        return
    for user in list(node.users):
        if user.target is operator.getitem:
            position: Any = user.args[1]
            _set_value(user, node.meta["val"][position])
            _cast_back(graph, user, expected[position])


def _first_tensor(value: Any) -> FakeTensor:
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return next(part for part in parts if isinstance(part, FakeTensor))


def _set_value(node: Node, value: Any) -> None:
    """The importer believes `tensor_meta` before `val`."""
    node.meta = {key: kept for key, kept in node.meta.items() if key != "tensor_meta"} | {"val": value}


def _cast_back(graph: Graph, node: Node, expected: torch.Tensor) -> None:
    if node.meta["val"].dtype == expected.dtype:
        return
    with graph.inserting_after(node):
        narrow = _cast(graph, node, expected.dtype)
    node.replace_all_uses_with(narrow, delete_user_cb=lambda user: user is not narrow)


def _cast(graph: Graph, source: Node, dtype: torch.dtype) -> Node:
    cast = graph.call_function(aten._to_copy.default, (source,), {"dtype": dtype})
    cast.meta["val"] = source.meta["val"].to(dtype)
    return cast
