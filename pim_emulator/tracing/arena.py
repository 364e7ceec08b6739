"""Memory for the buffers of traced nests: mapped lazily, laid out the same way each time."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torch_pim.compiler_hook.codegen.memref import NUMPY_TYPES, MemRefValue
from torch_pim.compiler_hook.outline.nest_function import ConcreteParameter
from torch_pim.features.nest import ELEMENT_BYTES
from torch_pim.pim_emulator.caches.geometry import ADDRESS_SHIFT

PAGE_BYTES = 4096
ORIGIN = 1 << 32
"""Address that the first byte of an arena has in a relocated trace."""

SKEW_LINES = 61
"""Buffers begin at different lines of a page, so that they do not all compete for one cache set."""

STRAY_BLOCK_BYTES = 16


class Arena:
    """Buffers of one nest in one anonymous mapping that reads as zero; only touched pages take memory."""

    def __init__(self, parameters: Sequence[ConcreteParameter]) -> None:
        self._starts: list[int] = []
        position = 0
        for number, parameter in enumerate(parameters):
            start = position + 64 * ((17 * number) % SKEW_LINES)
            self._starts.append(start)
            position = -(-(start + parameter_bytes(parameter)) // PAGE_BYTES) * PAGE_BYTES
        self.nbytes = position + PAGE_BYTES
        self._parameters = tuple(parameters)
        self._map = mmap.mmap(-1, self.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_NORESERVE)
        self._bytes = np.frombuffer(self._map, dtype=np.uint8)
        self._base = int(self._bytes.ctypes.data)

    def argument(self, position: int) -> MemRefValue | int | float:
        """The buffer of a memref parameter, or the value of a scalar one."""
        parameter = self._parameters[position]
        if parameter.is_scalar:
            return parameter.scalar_value
        pointer = self._base + self._starts[position]
        return MemRefValue(
            pointer, parameter.offset, parameter.shape, parameter.strides, parameter.element_type, self._bytes
        )

    def fill(self, position: int, values: NDArray[np.int64]) -> None:
        """Write integers over the whole of a buffer, repeated as often as needed."""
        parameter = self._parameters[position]
        start = self._starts[position]
        target = self._bytes[start : start + parameter_bytes(parameter)].view(NUMPY_TYPES[parameter.element_type])
        target[:] = np.resize(values, target.size)

    def relocate(self, trace: NDArray[np.int64]) -> NDArray[np.int64]:
        """A copy of a trace as if the arena began at ORIGIN, so that equal nests have equal traces in every process.

        Memory outside the arena (allocated or constant in the code) is renamed in blocks by order of first use.
        """
        moved = trace + ((ORIGIN - self._base) << ADDRESS_SHIFT)
        addresses = trace >> ADDRESS_SHIFT
        outside = (addresses < self._base) | (addresses >= self._base + self.nbytes)
        if outside.any():
            stray = addresses[outside]
            blocks, first, which = np.unique(stray // STRAY_BLOCK_BYTES, return_index=True, return_inverse=True)
            order = np.empty(blocks.size, dtype=np.int64)
            order[np.argsort(first)] = np.arange(blocks.size)
            renamed = ORIGIN + self.nbytes + order[which] * STRAY_BLOCK_BYTES + stray % STRAY_BLOCK_BYTES
            low = trace[outside] & ((1 << ADDRESS_SHIFT) - 1)
            moved[outside] = (renamed << ADDRESS_SHIFT) | low
        return moved


def parameter_bytes(parameter: ConcreteParameter) -> int:
    """Bytes from the pointer of a buffer to the end of its last element; 0 for scalars and empty buffers."""
    if parameter.is_scalar or 0 in parameter.shape:
        return 0
    last = parameter.offset + sum(
        (size - 1) * stride for size, stride in zip(parameter.shape, parameter.strides, strict=True)
    )
    return (last + 1) * ELEMENT_BYTES[parameter.element_type]
