"""All nests of small models: rewrites and splits against plain loops run in one piece."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from torch_pim.compiler_hook.codegen import range_form, range_module
from torch_pim.compiler_hook.codegen.arguments import allocate_arguments
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary, clear_kernel_cache
from torch_pim.compiler_hook.codegen.memref import NUMPY_TYPES, MemRefValue
from torch_pim.compiler_hook.lowered import lower_model
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest

TOLERANCE = {"f64": 1e-10, "f32": 1e-4, "f16": 2e-2, "bf16": 5e-2}


class Operators(nn.Module):
    """Gathers, scatters, sorting, sequential scans, masks and reductions over several axes."""

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.gather(x, 1, ids), torch.scatter_add(x, 1, ids, x), x[ids[0] % 6], torch.topk(x, 3)[1],
            x.cumsum(0), x.argmax(1), x.sum(0), x.mean(), x.masked_fill(x > 0, -1.0), torch.softmax(x, 0),
            ids // 3 + ids % 5,
        )  # fmt: skip


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, groups=2), nn.ConvTranspose2d(16, 4, 3, stride=2),
    ).eval()  # fmt: skip


def narrow() -> nn.Module:
    return nn.Sequential(nn.Linear(30, 50), nn.GELU(), nn.LayerNorm(50), nn.Linear(50, 20)).bfloat16()


MODELS = {
    "convolutions": (convolutions, (torch.ones(2, 3, 16, 16),)),
    "encoder": (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), (torch.ones(2, 9, 32),)),
    "operators": (Operators, (torch.ones(6, 6), torch.zeros(6, 6, dtype=torch.int64))),
    "recurrent": (lambda: nn.LSTMCell(8, 12), (torch.ones(2, 8),)),
    "bfloat16": (narrow, (torch.ones(7, 30, dtype=torch.bfloat16),)),
}


def run(library: KernelLibrary, nest: ConcreteNest, cuts: Sequence[int] = ()) -> list[np.ndarray]:
    """Contents of all buffers (as the bytes they span) after a run in the given parts."""
    arguments = allocate_arguments(nest, 0)
    bound = library.kernel(nest.function.code_hash).bind(arguments)
    edges = sorted({0, bound.iterations, *(cut % (bound.iterations + 1) for cut in cuts)})
    for lo, hi in pairwise(edges):
        bound(lo, hi)
    found = []
    for argument in arguments:
        if isinstance(argument, MemRefValue) and 0 not in argument.shape:
            dtype = NUMPY_TYPES[argument.element_type]
            assert isinstance(argument.owner, np.ndarray)
            start = argument.pointer - argument.owner.ctypes.data
            steps = zip(argument.shape, argument.strides, strict=True)
            count = argument.offset + sum((size - 1) * stride for size, stride in steps) + 1
            found.append(argument.owner[start : start + count * dtype.itemsize].view(dtype).copy())
    return found


@pytest.mark.parametrize("name", MODELS)
def test_every_nest(monkeypatch, name):
    build, example = MODELS[name]
    torch.manual_seed(0)
    nests = lower_model(build(), example).concrete_nests()
    functions = [nest.function for nest in nests]
    library = KernelLibrary.compile(functions)
    with monkeypatch.context() as patch:
        for rewrite in ("keep_in_registers", "forward_stores", "relax_reductions"):
            patch.setattr(range_module, rewrite, lambda function: None)
        patch.setattr(range_form, "make_accesses_contiguous", lambda loop, trips: None)
        clear_kernel_cache()
        plain = KernelLibrary.compile(functions)
        clear_kernel_cache()
    chance = random.Random(0)
    for nest in nests:
        whole = run(library, nest)
        for left, right in zip(whole, run(library, nest, [chance.randrange(10**6) for _ in range(6)]), strict=True):
            np.testing.assert_array_equal(left, right, err_msg=nest.function.canonical)
        for left, right in zip(whole, run(plain, nest), strict=True):
            element = next((e for e, dtype in NUMPY_TYPES.items() if dtype == left.dtype), "")
            np.testing.assert_allclose(
                left.astype(np.float64), right.astype(np.float64), err_msg=nest.function.canonical,
                rtol=TOLERANCE.get(element, 0), atol=TOLERANCE.get(element, 0),
            )  # fmt: skip
