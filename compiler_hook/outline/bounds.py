"""Do the accesses of a nest stay inside its buffers? Asked for nests of dynamic size, whose sizes callers choose."""

from __future__ import annotations

from collections.abc import Sequence

from torch_pim.compiler_hook.errors import ShapeError
from torch_pim.compiler_hook.outline.layout import Layout
from torch_pim.compiler_hook.outline.nest_function import ConcreteParameter
from torch_pim.features.extent import concrete
from torch_pim.features.nest import ELEMENT_BYTES, Access, LoopNest


def check_bounds(program: str, nest: LoopNest, parameters: Sequence[ConcreteParameter]) -> None:
    """Raises ShapeError naming the first buffer that the nest's loops would leave.

    Looks at accesses that every iteration makes at an address linear in the loop counters; guarded and gathered ones
    carry their own run-time checks. Sizes that should agree and do not show here: an elementwise operation on 64 and
    on 5 elements runs over the end of the second.
    """
    buffers = [parameter for parameter in parameters if not parameter.is_scalar]
    for access in nest.accesses:
        if access.buffer >= len(buffers) or not _is_certain(nest, access):
            continue
        buffer = buffers[access.buffer]
        low, high = Layout(buffer.shape, buffer.strides).span()
        size = ELEMENT_BYTES[access.element_type]
        if _reach_bytes(nest, access) > (high - low) * size:
            operators = ", ".join(nest.aten_operators) or nest.name
            shapes = ", ".join("x".join(map(str, other.shape)) or "scalar" for other in buffers)
            raise ShapeError(
                f"{program}: sizes do not agree in {operators}: a buffer of shape "
                f"{'x'.join(map(str, buffer.shape)) or 'scalar'} is too small for the loops over its operands "
                f"(shapes {shapes}); give arguments whose sizes match"
            )


def _is_certain(nest: LoopNest, access: Access) -> bool:
    loops = [nest.loops[i] for i in nest.enclosing(access.loop)]
    return (
        access.affine
        and not access.indirect
        and access.probability == 1.0
        and not any(loop.estimated for loop in loops)
        and nest.executions(access.loop) > 0
    )


def _reach_bytes(nest: LoopNest, access: Access) -> int:
    """Bytes from the first to behind the last element that the access touches."""
    steps = sum(abs(concrete(stride)) * (concrete(nest.loops[loop].trip) - 1) for loop, stride in access.byte_strides)
    return steps + ELEMENT_BYTES[access.element_type]
