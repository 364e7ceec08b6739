"""The emulated PIM device as the runtime sees it: it runs kernels for real, each core's share of the iterations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from torch_pim.compiler_hook.errors import DeviceError
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.protocols import RangeKernel
from torch_pim.features.extent import concrete
from torch_pim.features.machines import DeviceSpec

ADDRESS_TYPES = frozenset({"index", "i1"})
"""Types that every core handles: addresses and truth values."""

Range = tuple[int, int]


class EmulatedDevice:
    """Splits a nest's iterations over the cores in blocks and runs each block on this machine. Safe to share."""

    def __init__(self, spec: DeviceSpec, threads: int = 1) -> None:
        """With several `threads` the blocks of the cores run side by side on as many threads of this machine."""
        if threads < 1:
            raise DeviceError(f"device {spec.name}: threads is {threads}; expected one or more")
        self.spec = spec
        self._threads = threads

    def run(self, kernel: RangeKernel, iterations: int) -> tuple[Range, ...]:
        """Runs iterations [0, iterations) and returns the block of each core that got one, in order of the cores.

        An error of the kernel ends the run; blocks that had not started are not run.
        """
        blocks = self.blocks(iterations)
        if self._threads == 1 or len(blocks) == 1:
            for low, high in blocks:
                kernel(low, high)
            return blocks
        with ThreadPoolExecutor(self._threads, thread_name_prefix=f"pim-{self.spec.name}") as pool:
            running = [pool.submit(kernel, low, high) for low, high in blocks]
            try:
                for block in running:
                    block.result()
            except BaseException:
                for block in running:
                    block.cancel()
                raise
        return blocks

    def blocks(self, iterations: int) -> tuple[Range, ...]:
        """Block partition: at most one block per core, sizes that differ by one at most."""
        if iterations < 0:
            raise DeviceError(f"device {self.spec.name}: cannot run {iterations} iterations")
        cores = min(self.spec.cores, iterations)
        return tuple((core * iterations // cores, (core + 1) * iterations // cores) for core in range(cores))

    def supports(self, nest: ConcreteNest) -> str | None:
        """None if the device can run the nest, else the reason why not."""
        record = nest.loop_nest
        if not record.partitionable:
            return "not partitionable: its iterations cannot be split over cores"
        used = {o.element_type for o in record.operations} | {b.element_type for b in record.buffers}
        missing = sorted(used - ADDRESS_TYPES - set(self.spec.supported_types))
        if missing:
            return f"element type {', '.join(missing)} is not supported by {self.spec.name}"
        nbytes = sum(concrete(buffer.nbytes) for buffer in record.buffers)
        if nbytes > self.spec.capacity_bytes:
            return f"its buffers take {nbytes} bytes, {self.spec.name} holds {self.spec.capacity_bytes}"
        return None


def emulated_device(spec: DeviceSpec) -> EmulatedDevice:
    """The device that a specification describes."""
    return EmulatedDevice(spec)
