"""What is placed on PIM really runs there, split over the device's cores, and the comparison would notice if not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from torch_pim.models.work_filter import forced_reason

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for
from .devices import LosingDevice, RecordingDevice
from .small_models import MODELS


@pytest.mark.parametrize("name", ["mlp", "norm-softmax", "lstm", "llama-small-decode", "resnet-small"])
def test_every_nest_that_can_runs_on_the_device(name: str) -> None:
    target = target_for("pim")
    assert isinstance(target.device, RecordingDevice)
    module, arguments = MODELS[name]()
    with torch.no_grad():
        model, session = compiled(module, target)
        model(*arguments)
    (graph,) = session.graphs
    (placed,) = graph.placed
    able = [
        call.iterations
        for call in placed.specialised.calls
        if forced_reason(placed.problem.nests[call.nest], target.device_spec) is None
    ]
    # A nest that is split has work for several cores, not all on one of them.
    assert [iterations for iterations, _ in target.device.runs] == able
    for iterations, blocks in target.device.runs:
        assert len(blocks) == min(iterations, target.device_spec.cores)
        assert [low for low, _ in blocks] == [0, *(high for _, high in blocks[:-1])]
        assert blocks[-1][1] == iterations
    assert sum(iterations > 1 for iterations in able) >= 0.5 * len(able)
    assert len(able) + sum(d.side == "host" for d in placed.placement.decisions) == len(placed.specialised.calls)


def test_the_host_policy_leaves_the_device_alone() -> None:
    target = target_for("host")
    assert isinstance(target.device, RecordingDevice)
    module, arguments = MODELS["mlp"]()
    with torch.no_grad():
        model, _ = compiled(module, target)
        model(*arguments)
    assert target.device.runs == []


@pytest.fixture
def _fresh_memory_is_nan() -> Iterator[None]:
    """Otherwise memory that a broken device leaves alone may still hold the right numbers of an earlier call."""
    torch.use_deterministic_algorithms(True)
    assert torch.empty(1).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("_fresh_memory_is_nan")
@pytest.mark.parametrize("name", ["mlp", "attention", "embedding-bag", "gptj-small", "resnet-small"])
def test_the_comparison_notices_a_device_that_loses_work(name: str) -> None:
    module, arguments = MODELS[name]()
    with torch.no_grad():
        expected = module(*arguments)
        model, _ = compiled(module, target_for("pim", LosingDevice))
        actual = model(*arguments)
    with pytest.raises(AssertionError):
        assert_equal_to_eager(actual, expected)
