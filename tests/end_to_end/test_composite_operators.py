"""Breadth beside the operator table: operators that PyTorch composes of others, and rarer ones."""

from __future__ import annotations

import pytest

from torch_pim.compiler_hook.target import Target

from .compiling import target_for
from .operator_cases import composites
from .operator_cases.case import Case
from .operator_cases.check import check

CASES = composites.POINTWISE + composites.ALONG_AXES + composites.MOVES + composites.LAYERS


@pytest.fixture(scope="module")
def target() -> Target:
    return target_for("pim")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator_equals_eager(case: Case, target: Target) -> None:
    check(case, target)
