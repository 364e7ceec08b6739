"""What a compiled graph returns has the layout, type and identity that PyTorch promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.graph_outputs import GraphOutputs


def traced(function: Callable[..., Any], *arguments: torch.Tensor, mode: str = "fake") -> GraphModule:
    return make_fx(function, tracing_mode=mode)(*arguments)


def eager(module: GraphModule, outputs: GraphOutputs, arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Results of the program, contiguous as compiled code makes them, from running the nodes themselves."""
    values: dict[str, torch.Tensor] = {}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            values[n.name] = super().run_node(n)
            return values[n.name]

    Recorder(module).run(*arguments)
    return [values[node.name].contiguous() for node in outputs.computed]


def call(module: GraphModule, *arguments: torch.Tensor) -> list[Any]:
    outputs = GraphOutputs(module)
    return outputs(arguments, eager(module, outputs, arguments))


def test_inputs_pass_through_untouched() -> None:
    module = traced(lambda x, y: (x, x + y, y), torch.ones(2), torch.ones(2))
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert [node.op for node in GraphOutputs(module).computed] == ["call_function"]
    first, total, last = call(module, x, y)
    assert first is x
    assert last is y
    assert total.tolist() == [4.0, 6.0]


def test_a_node_that_is_returned_twice_is_computed_once() -> None:
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1.0
        return y, y

    module = traced(twice, torch.ones(2))
    assert len(GraphOutputs(module).computed) == 1
    first, second = call(module, torch.ones(2))
    assert first is second


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2.0).t(),
        lambda x: (x * 2.0)[:, :1],
        lambda x: (x * 2.0).expand(4, 3, 5),
        lambda x: x * 2.0,
        lambda x: x[:0] * 2.0,
        lambda x: (x * 2.0)[:1, :1].t(),
    ],
    ids=["transposed", "column", "expanded", "plain", "empty", "one element"],
)
def test_strides_are_those_of_the_graph(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.arange(15.0).view(3, 5)
    (result,) = call(traced(lambda x: (function(x),), x), x)
    expected = function(x)
    assert torch.equal(result, expected)
    assert result.stride() == expected.stride()


def test_bytes_keep_their_sign() -> None:
    module = traced(lambda x: (x + 1,), torch.zeros(2, dtype=torch.uint8))
    outputs = GraphOutputs(module)
    (result,) = outputs([torch.zeros(2, dtype=torch.uint8)], [torch.tensor([-1, 1], dtype=torch.int8)])
    assert result.dtype == torch.uint8
    assert result.tolist() == [255, 1]


@pytest.mark.parametrize("rows", [3, 7])
def test_symbolic_sizes_and_strides(rows: int) -> None:
    module = traced(lambda x: ((x * 2.0).t(), x.shape[0] * 3 + 1, x.shape[1]), torch.ones(4, 6), mode="symbolic")
    x = torch.arange(rows * 6.0).view(rows, 6)
    transposed, size, columns = call(module, x)
    assert torch.equal(transposed, (x * 2.0).t())
    assert transposed.stride() == (1, 6)
    assert (size, columns) == (rows * 3 + 1, 6)
    assert type(size) is int


def test_constants_and_none_are_outputs_too() -> None:
    module = symbolic_trace(lambda x: (x, None, 3))
    x = torch.ones(1)
    assert GraphOutputs(module)([x], []) == [x, None, 3]


def test_a_single_output_is_a_list_of_one() -> None:
    module = symbolic_trace(lambda x: x)
    x = torch.ones(1)
    assert GraphOutputs(module)([x], [])[0] is x


def test_a_size_that_no_argument_gives_is_refused() -> None:
    module = traced(lambda x, y: (x + 1.0, y.shape[0]), torch.ones(4, 6), torch.ones(5), mode="symbolic")
    for node in module.graph.nodes:
        if node.op == "placeholder" and node.name.startswith("y"):
            node.meta["val"] = None
    with pytest.raises(LoweringError, match=r"output size s\d+ depends on s\d+, which no argument of the graph gives"):
        GraphOutputs(module)
