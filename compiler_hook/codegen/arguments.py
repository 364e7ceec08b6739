"""Made-up arguments for a nest: buffers of the right size and layout with data that is safe to run on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from torch_pim.compiler_hook.codegen.index_bounds import index_bounds
from torch_pim.compiler_hook.codegen.kernel import Argument
from torch_pim.compiler_hook.codegen.memref import NUMPY_TYPES, MemRefValue
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest, ConcreteParameter

ALIGNMENT_BYTES = 64
FILLED_BYTES = 1 << 22
"""Float buffers up to this size get random values in any case; larger ones only when asked for."""
_PATTERN_BYTES = 1 << 20
_PAGE_BYTES = 4096
_STAGGER_LINES = 17
"""Buffers start at different lines of a page, as they would in a heap: not all in the same cache sets."""


class BufferPool:
    """Memory that is used again from nest to nest, so that the system maps its pages only once."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, nbytes: int) -> tuple[int, npt.NDArray[np.uint8]]:
        """(address aligned to a page, bytes from there on): valid until the next call, contents arbitrary."""
        if self._memory.nbytes < nbytes + _PAGE_BYTES:
            self._memory = np.empty(0, np.uint8)  # frees the old memory first
            self._memory = np.empty(nbytes + _PAGE_BYTES, np.uint8)
        start = -self._memory.ctypes.data % _PAGE_BYTES
        return self._memory.ctypes.data + start, self._memory[start : start + nbytes]


def allocate_arguments(
    nest: ConcreteNest, seed: int, *, pool: BufferPool | None = None, fill_all: bool = False
) -> tuple[Argument, ...]:
    """One argument per parameter, in one piece of memory at the same relative addresses each time.

    Buffers that hold addresses get uniform valid indices, bools 0 or 1, other integers 1, floats uniform values in
    [-1, 1). Floats beyond FILLED_BYTES keep what the memory held (zeros when it is new) unless `fill_all` is set:
    time measurements need it, because untouched pages all share one physical page. Equal seeds give equal contents.
    """
    sizes = [0 if parameter.is_scalar else _span_bytes(parameter) for parameter in nest.parameters]
    offsets = _offsets(sizes)
    pool = pool or BufferPool()
    base, memory = pool.take(max((o + s for o, s in zip(offsets, sizes, strict=True)), default=0))
    bounds = index_bounds(nest.function, nest.parameters)
    arguments: list[Argument] = []
    for position, parameter in enumerate(nest.parameters):
        if parameter.is_scalar:
            arguments.append(parameter.scalar_value)
            continue
        offset = offsets[position]
        content = memory[offset : offset + sizes[position]].view(NUMPY_TYPES[parameter.element_type])
        _fill(content, parameter.element_type, bounds[position], np.random.default_rng((seed, position)), fill_all)
        arguments.append(
            MemRefValue(
                base + offset, parameter.offset, parameter.shape, parameter.strides, parameter.element_type, memory
            )
        )
    return tuple(arguments)


def _span_bytes(parameter: ConcreteParameter) -> int:
    """Bytes from the base pointer to the end of the last element."""
    itemsize = NUMPY_TYPES[parameter.element_type].itemsize
    if 0 in parameter.shape:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(parameter.shape, parameter.strides, strict=True))
    return (parameter.offset + last + 1) * itemsize


def _offsets(sizes: Sequence[int]) -> list[int]:
    offsets = []
    end = 0
    for position, size in enumerate(sizes):
        start = math.ceil(end / _PAGE_BYTES) * _PAGE_BYTES
        start += position * _STAGGER_LINES * ALIGNMENT_BYTES % _PAGE_BYTES
        offsets.append(start)
        end = start + size
    return offsets


def _fill(
    content: npt.NDArray[np.generic], element_type: str, bound: int | None, random: np.random.Generator, fill_all: bool
) -> None:
    if not content.size:
        return
    if bound is not None:
        _tile(content, random.integers(0, bound, _pattern_size(content)) if bound > 1 else np.zeros(1))
    elif element_type == "i1":
        _tile(content, random.integers(0, 2, _pattern_size(content)))
    elif element_type == "index" or element_type.startswith("i"):
        content[:] = 1
    elif fill_all or content.nbytes <= FILLED_BYTES:
        _tile(content, random.uniform(-1.0, 1.0, _pattern_size(content)))


def _pattern_size(content: npt.NDArray[np.generic]) -> int:
    return min(content.size, _PATTERN_BYTES // content.itemsize)


def _tile(content: npt.NDArray[np.generic], pattern: npt.NDArray[np.generic]) -> None:
    """Repeats the pattern: random numbers are dear, copies are not."""
    values = pattern.astype(content.dtype)
    whole = content.size // values.size * values.size
    content[:whole].reshape(-1, values.size)[:] = values
    content[whole:] = values[: content.size - whole]
