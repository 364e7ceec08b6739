"""One compiled model in several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import Tensor

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for
from .small_models import MODELS


@pytest.mark.parametrize("policy", ["host", "pim", "random"])
def test_two_threads_call_one_model(policy: str) -> None:
    """From the first call on, which compiles; every thread has its own inputs, twenty times."""
    module, _ = MODELS["mlp"]()
    module.requires_grad_(False)
    model, session = compiled(module, target_for(policy))
    start = Barrier(2)

    def work(seed: int) -> list[tuple[Tensor, Tensor]]:
        start.wait()
        random = torch.Generator().manual_seed(seed)
        inputs = [torch.randn(5, 33, generator=random) for _ in range(20)]
        return [(model(x), module(x)) for x in inputs]

    with ThreadPoolExecutor(2) as pool:
        for pairs in pool.map(work, (1, 2)):
            for actual, expected in pairs:
                assert_equal_to_eager(actual, expected)
    assert not session.fallbacks
    assert all(len(graph.placed) == 1 for graph in session.graphs)


def test_threads_with_different_shapes() -> None:
    model, session = compiled(lambda x: (x @ x.t()).softmax(-1), target_for("pim"), dynamic=True)
    model(torch.randn(4, 6))

    def work(rows: int) -> None:
        for _ in range(10):
            x = torch.randn(rows, 6)
            assert_equal_to_eager(model(x), (x @ x.t()).softmax(-1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (3, 5, 7, 9)))
    assert len(session.graphs) == 1
    assert len(session.graphs[0].placed) == 5


def test_two_models_compile_at_once() -> None:
    target = target_for("pim")
    names = ("norm-softmax", "conv-bn-relu")
    built = [MODELS[name]() for name in names]
    models = [compiled(module, target)[0] for module, _ in built]
    start = Barrier(2)

    def work(number: int) -> None:
        module, arguments = built[number]
        start.wait()
        with torch.no_grad():
            assert_equal_to_eager(models[number](*arguments), module(*arguments))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
