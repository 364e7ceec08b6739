"""Nests written by hand, in the canonical form of the outliner."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import pytest
from torch_mlir import ir

from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, NestFunction, Parameter, ScalarParameter
from torch_pim.features.extent import Extent, Polynomial
from torch_pim.features.nest import Loop, LoopNest

MakeNest = Callable[..., NestFunction]


@pytest.fixture
def make_nest() -> MakeNest:
    """make_nest(text, trips): the text of one function @nest and the trip counts of its parallel dimensions.

    A trip may be a symbol as text (`a0.d1`). No trips means that the nest is not partitionable.
    """

    def make(text: str, trips: Sequence[int | str] = (), name: str = "hand-written") -> NestFunction:
        module_text = f"module {{\n{text}\n}}"
        extents: list[Extent] = [t if isinstance(t, int) else Polynomial.symbol(t) for t in trips]
        code_hash = hashlib.sha256(module_text.encode()).hexdigest()
        nest = LoopNest(
            name=name,
            loops=tuple(Loop("parallel", extent, i - 1) for i, extent in enumerate(extents)),
            parallel_rank=len(extents),
            accesses=(),
            operations=(),
            buffers=(),
            kind="compute",
            partitionable=bool(trips),
            code_hash=code_hash,
            aten_operators=("aten.test",),
        )
        return NestFunction(code_hash, module_text, _parameters(module_text), nest)

    return make


def _parameters(text: str) -> tuple[Parameter, ...]:
    with ir.Context():
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError:
            return ()
        function = next(iter(module.body.operations))
        types = list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
        dynamic = ir.MemRefType.get_dynamic_size(), ir.MemRefType.get_dynamic_stride_or_offset()
        found: list[Parameter] = []
        for kind in types:
            if not isinstance(kind, ir.MemRefType):
                found.append(ScalarParameter(str(kind)))
                continue
            strides, offset = kind.get_strides_and_offset()
            found.append(
                MemRefParameter(
                    str(kind.element_type),
                    tuple(None if s == dynamic[0] else s for s in kind.shape),
                    tuple(None if s == dynamic[1] else s for s in strides),
                    None if offset == dynamic[1] else offset,
                )
            )
        return tuple(found)
