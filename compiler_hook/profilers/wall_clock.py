"""Wall time of each nest alone, on made-up data, on the CPU this process runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from torch_pim.compiler_hook.codegen.arguments import BufferPool, allocate_arguments
from torch_pim.compiler_hook.codegen.kernel import BoundKernel
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.profilers.cpu_identity import read_cpu_identity
from torch_pim.compiler_hook.runtime.host_pool import HostPool
from torch_pim.features.profile import HostProfile

MINIMUM_REPEATS = 3
SAMPLE_NS = 20_000
"""A warm sample is a batch of calls that takes at least about this long, so that the clock's grain does not count."""
_MAXIMUM_BATCH = 1 << 12
_FALLBACK_LLC_BYTES = 64 << 20
_FLUSH_FACTOR = 2
"""The walk covers more than the last-level cache, because its replacement is not exactly least recently used."""


class WallClockProfiler:
    """Median wall time over repeated runs; implements Profiler.

    Warm repeats run on the same buffers back to back. Before each cold repeat the caches are flushed by reading a
    buffer larger than the last-level cache. The time of an empty call is subtracted.
    """

    def __init__(
        self,
        host_id: str | None = None,
        *,
        repeats: int = 15,
        budget_ns: int = 1_000_000_000,
        seed: int = 0,
        warm: bool = False,
        threads: int = 1,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """At most `repeats` samples per nest, fewer (but 3) once `budget_ns` is spent; `clock` returns nanoseconds.

        Without `host_id` the profiles carry the identity of this CPU. Raises ValueError for fewer than 3 repeats.
        """
        if repeats < MINIMUM_REPEATS:
            raise ValueError(f"expected at least {MINIMUM_REPEATS} repeats, found {repeats}")
        cpu = read_cpu_identity()
        self.host_id = host_id or cpu.host_id
        self._repeats = repeats
        self._budget_ns = budget_ns
        self._seed = seed
        self._warm = warm
        self._threads = threads
        self._clock = clock
        self._flush_bytes = _FLUSH_FACTOR * (cpu.last_level_bytes or _FALLBACK_LLC_BYTES)

    def profile(self, nests: Sequence[ConcreteNest]) -> tuple[HostProfile, ...]:
        """One profile per nest, in order; nests with equal keys are measured once."""
        library = KernelLibrary.compile([nest.function for nest in nests])
        buffers = BufferPool()
        flush = None if self._warm else np.ones(self._flush_bytes // 8, np.int64)
        profiles: dict[tuple[str, str], HostProfile] = {}
        with HostPool(self._threads) as pool:
            for nest in nests:
                if nest.key not in profiles:
                    arguments = allocate_arguments(nest, self._seed, pool=buffers, fill_all=True)
                    kernel = library.kernel(nest.function.code_hash).bind(arguments)
                    profiles[nest.key] = self._measure(nest.function.code_hash, kernel, pool, flush)
        return tuple(profiles[nest.key] for nest in nests)

    def _measure(
        self,
        code_hash: str,
        kernel: BoundKernel,
        pool: HostPool,
        flush: np.ndarray[tuple[int], np.dtype[np.int64]] | None,
    ) -> HostProfile:
        def run() -> None:
            pool.run(kernel, kernel.iterations)

        overhead = min(self._time(lambda: kernel(0, 0), 100) for _ in range(MINIMUM_REPEATS))
        first = self._time(run, 1)
        batch = 1 if flush is not None else min(_MAXIMUM_BATCH, 1 + int(SAMPLE_NS / max(first, 1.0)))
        samples: list[float] = []
        start = self._clock()
        while len(samples) < MINIMUM_REPEATS or (
            len(samples) < self._repeats and self._clock() - start < self._budget_ns
        ):
            if flush is not None:
                flush.max()
            samples.append(max(0.0, self._time(run, batch) - overhead))
        low, median, high = (float(value) for value in np.percentile(samples, (25, 50, 75)))
        return HostProfile(
            code_hash=code_hash,
            host_id=self.host_id,
            origin="wall",
            wall_time_ns=median,
            warm=self._warm,
            wall_time_spread=(high - low) / median if median > 0 else 0.0,
            repeats=len(samples),
        )

    def _time(self, run: Callable[[], None], calls: int) -> float:
        """Nanoseconds per call."""
        start = self._clock()
        for _ in range(calls):
            run()
        return (self._clock() - start) / calls
