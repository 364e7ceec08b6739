"""Operators one by one: each runs through torch.compile as placed nests and equals eager, without any fallback.

What is counted: overloads of ATen operators, each once, however many cases it has. A case counts for the overload that
it names, and only if the graph that torch.export makes of it, before any decomposition, calls that overload.
"""

from __future__ import annotations

import pytest

from torch_pim.compiler_hook.target import Target

from .compiling import target_for
from .operator_cases import layers, memory, pointwise, reductions
from .operator_cases.case import Case
from .operator_cases.check import check

CASES = [
    *(pointwise.FUNCTIONS + pointwise.ACTIVATIONS + pointwise.ARITHMETIC + pointwise.COMPARISONS),
    *(pointwise.BITS + pointwise.CASTS),
    *(reductions.SUMS + reductions.EXTREMES + reductions.MOMENTS + reductions.SOFTMAX + reductions.SCANS),
    *(reductions.ORDERS + reductions.NORMS + reductions.LOSSES),
    *(memory.INDEXING + memory.SCATTERS + memory.VIEWS + memory.JOINS + memory.PADS + memory.CONSTANTS),
    *(layers.CONTRACTIONS + layers.CONVOLUTIONS + layers.POOLS + layers.RESAMPLING),
]


@pytest.fixture(scope="module")
def target() -> Target:
    return target_for("pim")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator_equals_eager(case: Case, target: Target) -> None:
    check(case, target)


def test_the_table_covers_many_overloads() -> None:
    assert len({case.overload for case in CASES}) >= 200
    assert len({str(case) for case in CASES}) == len(CASES)
