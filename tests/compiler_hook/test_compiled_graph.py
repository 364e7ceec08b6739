"""Compiled graphs by themselves: argument checks, memory of results, shapes, refusals of the device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch.export import Dim

from torch_pim.compiler_hook import lowered as lowered_module
from torch_pim.compiler_hook.compiled_graph import CompiledGraph
from torch_pim.compiler_hook.errors import ShapeError
from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.protocols import RangeKernel
from torch_pim.compiler_hook.target import Target, resolve

Lower = Callable[..., LoweredProgram]
N = Dim("n", min=2)


@pytest.fixture(scope="module")
def target() -> Target:
    return resolve(CompileOptions(policy="pim", threads=1))


@pytest.fixture(scope="module")
def matmul(lower: Lower, target: Target) -> CompiledGraph:
    program = lower(
        lambda x, w: torch.relu(x @ w), torch.randn(8, 16), torch.randn(16, 4), dynamic_shapes=({0: N}, None)
    )
    return CompiledGraph(program, target)


def expected(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x.double() @ w.double()).float()


@pytest.mark.parametrize("rows", [2, 9])
def test_one_compilation_serves_all_sizes(matmul: CompiledGraph, rows: int) -> None:
    x, w = torch.randn(rows, 16), torch.randn(16, 4)
    (result,) = matmul([x, w])
    torch.testing.assert_close(result, expected(x, w))


ODD = {
    "transposed": lambda: torch.randn(16, 8).t(),
    "column block": lambda: torch.randn(8, 40)[:, 3:19],
    "every other row": lambda: torch.randn(16, 16)[::2],
    "expanded": lambda: torch.randn(1, 16).expand(8, 16),
    "negated view": lambda: torch._neg_view(torch.randn(8, 16)),
    "needs a gradient": lambda: torch.randn(8, 16, requires_grad=True),
}


@pytest.mark.parametrize("name", ODD)
def test_arguments_of_any_layout(matmul: CompiledGraph, name: str) -> None:
    x, w = ODD[name](), torch.randn(16, 4)
    (result,) = matmul([x, w])
    torch.testing.assert_close(result, expected(x.detach(), w))
    assert not result.requires_grad


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(8, 16, dtype=torch.float64), r"argument 0 is torch.float64, compiled for torch.float32"),
        (
            torch.zeros(8, 16, device="meta"),
            r"argument 0 is on meta in layout torch.strided; expected a dense CPU tensor",
        ),
        (torch.zeros(8, 16).to_sparse(), r"expected a dense CPU tensor"),
        (torch.zeros(8, 15), r"argument 0 has shape 8x15, compiled for \?x16"),
        (3.0, r"argument 0 must be a tensor"),
    ],
    ids=["type", "device", "sparse", "shape", "number"],
)
def test_arguments_that_do_not_fit(matmul: CompiledGraph, x: object, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        matmul([x, torch.zeros(16, 4)])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_number_of_arguments(matmul: CompiledGraph, count: int) -> None:
    with pytest.raises(ShapeError, match=f"{count} arguments given, 2 expected"):
        matmul([torch.zeros(8, 16)] * count)


def test_one_tensor_in_two_places(lower: Lower, target: Target) -> None:
    graph = CompiledGraph(lower(lambda x, y: (x + y, x @ y), torch.randn(4, 4), torch.randn(4, 4)), target)
    x = torch.randn(4, 4)
    total, product = graph([x, x])
    torch.testing.assert_close(total, x + x)
    torch.testing.assert_close(product, x @ x)
    overlapping = torch.randn(5, 4)
    total, _ = graph([overlapping[:4], overlapping[1:]])
    torch.testing.assert_close(total, overlapping[:4] + overlapping[1:])


def test_results_may_be_changed_without_harm(lower: Lower, target: Target) -> None:
    constant = torch.tensor([1.0, 2.0, 3.0])
    graph = CompiledGraph(lower(lambda x: (x.clone(), x + 1.0, x + 1.0, x.view(3, 1)), torch.randn(3)), target)
    x = torch.tensor([4.0, 5.0, 6.0])
    results = graph([x])
    for result in results:
        result.zero_()
        assert x.tolist() == [4.0, 5.0, 6.0]
    again = graph([x])
    assert [r.flatten().tolist() for r in again] == [[4.0, 5.0, 6.0], [5.0, 6.0, 7.0], [5.0, 6.0, 7.0], [4.0, 5.0, 6.0]]
    assert constant.tolist() == [1.0, 2.0, 3.0]


def test_empty_and_scalar_tensors(lower: Lower, target: Target) -> None:
    graph = CompiledGraph(
        lower(
            lambda x, s: (x * s, x.sum(0)),
            torch.randn(2, 3),
            torch.tensor(2.0),
            dynamic_shapes=({0: Dim("m", min=0, max=8)}, None),
        ),
        target,
    )
    product, total = graph([torch.zeros(0, 3), torch.tensor(3.0)])
    assert product.shape == (0, 3)
    assert total.tolist() == [0.0, 0.0, 0.0]
    product, total = graph([torch.ones(2, 3), torch.tensor(3.0)])
    assert product.tolist() == [[3.0] * 3] * 2
    assert total.tolist() == [2.0] * 3


def test_threads_may_share_a_graph(matmul: CompiledGraph) -> None:
    w = torch.randn(16, 4)
    inputs = [torch.randn(2 + i % 5, 16) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: matmul([x, w])[0], inputs))
    for x, result in zip(inputs, results, strict=True):
        torch.testing.assert_close(result, expected(x, w))


def test_shapes_are_remembered_up_to_a_limit(lower: Lower, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowered_module, "REMEMBERED_SHAPES", 3)
    graph = CompiledGraph(lower(lambda x: x + 1.0, torch.randn(4), dynamic_shapes=({0: N},)), target)
    for n in (2, 3, 4, 5, 6, 2):
        assert graph([torch.zeros(n)])[0].tolist() == [1.0] * n
    assert len(graph.placed) == 3


class Refusing:
    """A device that takes no nest with more than 100 iterations."""

    def __init__(self, target: Target) -> None:
        self.spec = target.device_spec
        self.ran: list[int] = []

    def run(self, kernel: RangeKernel, iterations: int) -> tuple[tuple[int, int], ...]:
        self.ran.append(iterations)
        kernel(0, iterations)
        return ((0, iterations),)

    def supports(self, nest: ConcreteNest) -> str | None:
        return "too many iterations" if nest.loop_nest.parallel_trip > 100 else None


def test_what_the_device_refuses_runs_on_the_host(lower: Lower, target: Target) -> None:
    device = Refusing(target)
    graph = CompiledGraph(
        lower(lambda x, y: (x + 1.0, y + 1.0), torch.randn(20), torch.randn(200)), replace(target, device=device)
    )
    results = graph([torch.zeros(20), torch.zeros(200)])
    assert [r.tolist() for r in results] == [[1.0] * 20, [1.0] * 200]
    assert device.ran == [20]
    (placed,) = graph.placed
    small, large = placed.placement.decisions
    assert (small.side, large.side, large.stage) == ("pim", "host", "forced")
    assert large.reason == "the device cannot run it: too many iterations"
