"""Memory for the buffers of traced nests: zero, mapped lazily, and at the same addresses in every trace."""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt

from torch_pim.compiler_hook.codegen.arguments import BufferPool
from torch_pim.pim_emulator.caches.geometry import ADDRESS_SHIFT

ORIGIN = 1 << 32
"""Address of the arena's first byte in a relocated trace."""

STRAY_BLOCK_BYTES = 16


class Arena(BufferPool):
    """One anonymous mapping for all buffers of a nest. Only touched pages take memory, so weights cost nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.base = 0
        self.nbytes = 0

    def take(self, nbytes: int) -> tuple[int, npt.NDArray[np.uint8]]:
        """(address aligned to a page, zeroed bytes from there on)."""
        # The array keeps the mapping alive; both go when the last argument that refers to them does.
        mapping = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory = np.frombuffer(mapping, dtype=np.uint8)[:nbytes]
        self.base, self.nbytes = int(memory.ctypes.data), nbytes
        return self.base, memory

    def relocate(self, trace: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """A copy of a trace as if the arena began at ORIGIN, so that equal nests have equal traces in every process.

        Memory outside the arena (allocated by the nest, or constants in its code) is renamed in blocks by order of
        first use.
        """
        moved = trace + ((ORIGIN - self.base) << ADDRESS_SHIFT)
        addresses = trace >> ADDRESS_SHIFT
        outside = (addresses < self.base) | (addresses >= self.base + self.nbytes)
        if outside.any():
            stray = addresses[outside]
            blocks, first, which = np.unique(stray // STRAY_BLOCK_BYTES, return_index=True, return_inverse=True)
            names = np.empty(blocks.size, dtype=np.int64)
            names[np.argsort(first)] = np.arange(blocks.size)
            start = ORIGIN + -(-self.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
            renamed = start + names[which] * STRAY_BLOCK_BYTES + stray % STRAY_BLOCK_BYTES
            moved[outside] = renamed << ADDRESS_SHIFT | trace[outside] & ((1 << ADDRESS_SHIFT) - 1)
        return moved
