"""The outputs of one FX graph, from the results of its program: arguments, strides, symbolic sizes and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from torch_pim.compiler_hook.errors import LoweringError

Sizes = Mapping[Any, Any]
"""Sympy symbol -> its value in one call."""


@dataclass(frozen=True, slots=True)
class _Call:
    arguments: Sequence[Any]
    results: Sequence[Any]
    sizes: Sizes


_Rule = Callable[[_Call], Any]


class GraphOutputs:
    """What a graph returns. `computed` are the tensors that its program must return, each node once, in order."""

    def __init__(self, module: GraphModule) -> None:
        """Raises LoweringError for an output size that no argument of the graph determines."""
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._symbols = [_symbols(node.meta.get("val")) for node in placeholders]
        self._known = {symbol for places in self._symbols for symbol, _ in places}
        self._arguments = {node: position for position, node in enumerate(placeholders)}
        self._numbers: dict[Node, int] = {}
        self._rules = [self._rule(value) for value in _output_values(module)]
        self.computed = tuple(self._numbers)

    def __call__(self, arguments: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The graph's outputs; `arguments` are the graph's, `results` the program's for `computed`."""
        sizes: dict[Any, Any] = {}
        for places, argument in zip(self._symbols, arguments, strict=True):
            for symbol, dimension in places:
                sizes.setdefault(symbol, argument if dimension is None else argument.shape[dimension])
        call = _Call(arguments, results, sizes)
        return [rule(call) for rule in self._rules]

    def _rule(self, value: Any) -> _Rule:
        if not isinstance(value, Node):
            return lambda _: value
        if value in self._arguments:
            # AOTAutograd saves inputs for the backward pass this way: the tensor itself, not a copy.
            position = self._arguments[value]
            return lambda call: call.arguments[position]
        meta = value.meta.get("val")
        if isinstance(meta, torch.Tensor):
            number = self._numbers.setdefault(value, len(self._numbers))
            strides = [self._size(stride) for stride in meta.stride()]
            dtype = meta.dtype
            return lambda call: _as_eager(call.results[number], dtype, tuple(s(call.sizes) for s in strides))
        size = self._size(meta)
        return lambda call: size(call.sizes)

    def _size(self, value: Any) -> Callable[[Sizes], Any]:
        """Evaluates a plain or symbolic number."""
        kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}.get(type(value))
        if kind is None:
            return lambda _: value
        expression = value.node.expr
        unknown = expression.free_symbols - self._known
        if unknown:
            names = ", ".join(sorted(map(str, unknown)))
            raise LoweringError(f"output size {expression} depends on {names}, which no argument of the graph gives")
        if expression.is_Symbol:
            return lambda sizes: kind(sizes[expression])
        return lambda sizes: kind(expression.xreplace({s: sizes[s] for s in expression.free_symbols}))


def _symbols(meta: Any) -> list[tuple[Any, int | None]]:
    """(sympy symbol, tensor dimension that gives its value; None when the argument itself is the value)."""
    places: list[tuple[Any, int | None]] = []
    if isinstance(meta, (torch.SymInt, torch.SymFloat)):
        places = [(meta, None)]
    elif isinstance(meta, torch.Tensor):
        places = [(size, dimension) for dimension, size in enumerate(meta.shape) if isinstance(size, torch.SymInt)]
    return [(size.node.expr, dimension) for size, dimension in places if size.node.expr.is_Symbol]


def _output_values(module: GraphModule) -> list[Any]:
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    value = output.args[0]
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _as_eager(tensor: torch.Tensor, dtype: torch.dtype, strides: tuple[int, ...]) -> torch.Tensor:
    """The result in the element type and layout that PyTorch promises; a copy only where the layout differs."""
    if tensor.dtype != dtype:
        tensor = tensor.view(dtype)
    if tensor.stride() == strides:
        return tensor
    if tensor.numel() <= 1:
        return tensor.as_strided(tensor.shape, strides)
    # Elements of an expanded dimension share memory: one of them is stored.
    stored = tensor[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]
    memory = torch.empty_strided(stored.shape, strides, dtype=dtype)
    return memory.copy_(stored).as_strided(tensor.shape, strides)
