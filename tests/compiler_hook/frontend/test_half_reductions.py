"""Long half-precision reductions keep PyTorch's accuracy: they accumulate in f32."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from torch_pim.compiler_hook.frontend.decompositions import decomposition_table
from torch_pim.compiler_hook.frontend.half_reductions import HALF_REDUCTIONS

aten = torch.ops.aten
ROWS = torch.rand(3, 8192, generator=torch.Generator().manual_seed(0))

CASES = {
    "sum": (aten.sum.dim_IntList, ([1],)),
    "mean": (aten.mean.dim, ([1],)),
    "total": (aten.sum.default, ()),
    "cumulative sum": (aten.cumsum.default, (1,)),
    "vector norm": (aten.linalg_vector_norm.default, (2, [1])),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_the_decomposition_is_the_rounded_f32_result(name, dtype):
    operator, arguments = CASES[name]
    x = ROWS.to(dtype)
    found = decomposition_table()[operator](x, *arguments)
    assert found.dtype == dtype
    assert torch.equal(found, operator(x.float(), *arguments).to(dtype))


@pytest.mark.parametrize("operator", HALF_REDUCTIONS, ids=str)
def test_wider_types_stay_as_they_are(operator):
    arguments = {
        aten.convolution.default: (torch.ones(2, 3, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    }.get(operator, ())
    assert HALF_REDUCTIONS[operator](torch.ones(1, 3, 8, 8), *arguments) is NotImplemented


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_long_sum_through_the_whole_path(dtype):
    """In bf16 itself 8192 addends near one half would stop at 256."""
    import torch_pim

    x = ROWS.to(dtype)

    class Total(torch.nn.Module):
        def forward(self, x):
            return x.sum(-1), F.avg_pool1d(x[None], 4096)

    total, average = torch_pim.compile(Total(), policy="host")(x)
    torch.testing.assert_close(total, x.sum(-1), rtol=8e-3, atol=0)
    torch.testing.assert_close(average, F.avg_pool1d(x[None], 4096), rtol=8e-3, atol=0)
