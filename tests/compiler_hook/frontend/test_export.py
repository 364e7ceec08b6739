"""Models to graphs: weights marked, arguments kept apart, nothing allocated for fake tensors, reasons in errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph

from torch_pim.compiler_hook.errors import FrontendError
from torch_pim.compiler_hook.frontend.export import export_graph, load_exported
from torch_pim.compiler_hook.frontend.graph_import import graph_to_linalg, operator_name
from torch_pim.compiler_hook.frontend.tracing import decomposable_tracing
from torch_pim.compiler_hook.lowered import lower_model


class Counter(nn.Module):
    """A parameter, a buffer that changes, a constant of the module and one of the code."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(3))
        self.constant = torch.ones(3)

    def forward(self, x: torch.Tensor, scale: float = 1.0, *, shift: torch.Tensor | None = None) -> torch.Tensor:
        self.count.add_(1.0)
        y = x * self.weight * scale + self.constant + self.count + torch.tensor([1.0, 2.0, 3.0])
        return y if shift is None else y + shift


def placeholders(graph: Graph) -> list[str]:
    return [node.name for node in graph.find_nodes(op="placeholder")]


def test_weights_buffers_and_constants_are_weights() -> None:
    exported = export_graph(Counter(), (torch.zeros(3),))
    names = placeholders(exported.graph)
    assert [name for p, name in enumerate(names) if p not in exported.weights] == ["x"]
    assert len(names) == 5


def test_a_changed_buffer_is_a_result() -> None:
    program = lower_model(Counter(), (torch.zeros(3),)).program
    assert len(program.results) == 2


@pytest.mark.parametrize(
    ("arguments", "keywords", "inputs"),
    [((2.0,), {}, 1), ((2.0,), {"shift": torch.ones(3)}, 2), ((), {"scale": 3, "shift": torch.ones(3)}, 2)],
)
def test_numbers_are_constants_of_the_graph(arguments: tuple[Any, ...], keywords: dict[str, Any], inputs: int) -> None:
    lowered = lower_model(Counter(), (torch.zeros(3), *arguments), keywords)
    assert len(lowered.program.parameters) - len(lowered.weights) == inputs
    assert lowered.is_static


def test_one_example_tensor_in_several_places_makes_several_inputs() -> None:
    """torch.export takes equal objects for one input, and the compiled model would then ignore the others."""

    class Three(nn.Module):
        def forward(self, q: torch.Tensor, kv: list[torch.Tensor], *, mask: torch.Tensor) -> torch.Tensor:
            return q @ kv[0].t() @ kv[1] + mask

    x = torch.randn(4, 4)
    assert len(lower_model(Three(), (x, [x, x]), {"mask": x}).program.parameters) == 4


def test_fake_models_need_no_memory() -> None:
    """A linear layer of 40 GB."""
    with FakeTensorMode():
        model, x = nn.Linear(100_000, 100_000), torch.randn(2, 100_000)
    lowered = lower_model(model, (x,))
    assert lowered.specialised().calls[0].iterations == 2 * 100_000
    assert sum(root.nbytes for root in lowered.specialised().roots) > 40e9


def test_nested_results_are_flat() -> None:
    class Nested(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, Any]:
            return {"a": x + 1.0, "b": [x * 2.0, (x - 1.0,)]}

    assert len(lower_model(Nested(), (torch.zeros(3),)).program.results) == 3


def test_exported_programs_and_files(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    program = torch.export.export(model, (torch.zeros(2, 4),))
    torch.export.save(program, tmp_path / "model.pt2")
    hashes = [
        [function.code_hash for function in lower_model(source, arguments).program.functions]
        for source, arguments in (
            (model, (torch.zeros(2, 4),)), (program, ()), (load_exported(tmp_path / "model.pt2"), ()),
        )
    ]  # fmt: skip
    assert hashes[0] == hashes[1] == hashes[2]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        FrontendError, match=r"absent\.pt2: no such file; expected a model saved by torch\.export\.save"
    ):
        load_exported(tmp_path / "absent.pt2")
    (tmp_path / "text.pt2").write_text("text")
    with pytest.raises(FrontendError, match=r"text\.pt2: not a readable exported program"):
        load_exported(tmp_path / "text.pt2")


def test_a_model_that_cannot_be_traced_gives_the_reason() -> None:
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(FrontendError, match=r"torch\.export failed: .*data-dependent"):
        export_graph(Branch(), (torch.zeros(3),))


def test_an_operator_that_does_not_lower_is_named() -> None:
    class Fourier(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.rfft(x).abs()

    graph = export_graph(Fourier(), (torch.zeros(8),)).graph
    with pytest.raises(FrontendError, match="main"):
        graph_to_linalg(graph)


def test_nests_know_the_operators_and_nodes_they_come_from(lower: Callable[..., Any]) -> None:
    (nest,) = lower(lambda x: torch.exp(x) * 2.0, torch.zeros(3)).program.functions
    assert nest.loop_nest.aten_operators == ("aten.exp.default", "aten.mul.Tensor")
    assert nest.loop_nest.call_sites == ("exp+mul",)


def test_operator_names() -> None:
    graph = export_graph(nn.Softmax(-1), (torch.zeros(2, 3),)).graph
    names = [operator_name(node) for node in graph.nodes if node.op == "call_function"]
    assert names == [
        "aten.amax.default", "aten.sub.Tensor", "aten.exp.default", "aten.sum.dim_IntList", "aten.div.Tensor",
    ]  # fmt: skip


def test_tracing_state_is_restored() -> None:
    def state() -> tuple[bool, bool]:
        return torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled

    before = state()
    with decomposable_tracing():
        assert state() == (False, False)
    assert state() == before
