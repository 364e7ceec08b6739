"""How an address moves with a loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from torch_pim.features.analysis.work import access_count
from torch_pim.features.extent import concrete
from torch_pim.features.nest import ELEMENT_BYTES, Access, LoopNest

StrideClass = Literal["unit", "invariant", "strided", "indirect"]
STRIDE_CLASSES: tuple[StrideClass, ...] = ("unit", "invariant", "strided", "indirect")


def stride_class(access: Access, loop: int) -> StrideClass:
    """Class of an access along one loop.

    `unit`: the next element, up or down; `invariant`: the same address; `indirect`: loaded data moves it; `strided`:
    any other step, also the steps of an address that is not linear.
    """
    if loop in access.indirect_loops:
        return "indirect"
    stride = concrete(dict(access.byte_strides).get(loop, 0))
    if stride == 0:
        return "invariant"
    return "unit" if access.affine and abs(stride) == ELEMENT_BYTES[access.element_type] else "strided"


def stride_shares(nest: LoopNest) -> Mapping[StrideClass, float]:
    """Share of all executed accesses in each class, along the innermost loop around each; they sum to 1.

    A nest without accesses counts as invariant.
    """
    weights = dict.fromkeys(STRIDE_CLASSES, 0.0)
    for access in nest.accesses:
        weights[stride_class(access, access.loop)] += access_count(nest, access)
    total = sum(weights.values())
    if not total:
        return {**weights, "invariant": 1.0}
    return {name: weight / total for name, weight in weights.items()}
