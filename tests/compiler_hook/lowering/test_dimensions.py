"""Dynamic sizes that are equal are one value, so that dynamic models fuse as static ones do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim

from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.compiler_hook.outline.layout import contiguous

Lower = Callable[..., LoweredProgram]
ROWS = Dim("rows", min=2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.softmax(x, -1),
        lambda x: F.softmax(x, 0),
        lambda x: F.layer_norm(x, (24,)),
        lambda x: torch.relu(x @ torch.ones(24, 8) + 1.0),
        lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    ],
    ids=["softmax", "softmax over rows", "layer norm", "matmul", "rms norm"],
)
def test_one_nest_with_dynamic_rows(lower: Lower, function: Callable[..., torch.Tensor]) -> None:
    program = lower(function, torch.randn(32, 24), dynamic_shapes=({0: ROWS},))
    (nest,) = [f.loop_nest for f in program.program.functions if f.loop_nest.kind == "compute"]
    assert nest.symbols
    layouts = [contiguous((7, 24)), *(contiguous(p.shape) for p in program.program.parameters[1:])]
    (result,) = program.specialised(layouts).results
    assert result.layout.shape[0] == 7


def test_two_dynamic_dimensions_of_a_matmul(lower: Lower) -> None:
    shapes = ({0: ROWS}, {1: Dim("columns", min=2)})
    program = lower(lambda x, y: F.gelu(x @ y), torch.randn(8, 16), torch.randn(16, 12), dynamic_shapes=shapes)
    assert len(program.program.functions) == 1
    specialised = program.specialised([contiguous((5, 16)), contiguous((16, 3))])
    assert specialised.results[0].layout.shape == (5, 3)
    assert specialised.nests[0].loop_nest.parallel_trip == 15


def test_offsets_that_are_sums_of_sizes(lower: Lower) -> None:
    """The second half of a concatenation begins where the first one ends."""
    n, m = Dim("n", min=2), Dim("m", min=2)
    program = lower(
        lambda x, y: torch.cat([x, y], 1), torch.randn(4, 6), torch.randn(4, 8), dynamic_shapes=({1: n}, {1: m})
    )
    specialised = program.specialised([contiguous((4, 3)), contiguous((4, 5))])
    stored = [a.value.layout for call in specialised.calls for a in call.arguments if a.stored]
    assert [(layout.shape, layout.strides, layout.offset) for layout in stored] == [
        ((4, 3), (8, 1), 0),
        ((4, 5), (8, 1), 3),
    ]
