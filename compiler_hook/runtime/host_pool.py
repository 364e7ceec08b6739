"""Runs nests on the host's cores: small ones on the calling thread, large ones split over a thread pool."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from types import TracebackType

from torch_pim.compiler_hook.protocols import RangeKernel

ACCESSES_PER_SHARE = 1 << 20
"""Loads and stores that pay for waking a thread: from 0.1 ms of vectorised code, against tens of microseconds."""


class HostPool:
    """`threads` threads at most work on one nest, the calling one among them. Waiting threads sleep.

    Safe to use from several threads and for several models at once; they share the workers.
    """

    def __init__(self, threads: int) -> None:
        """Raises ValueError for fewer than one thread."""
        if threads < 1:
            raise ValueError(f"expected at least 1 thread, found {threads}")
        self.threads = threads
        self._closed = False
        self._workers = ThreadPoolExecutor(threads - 1, thread_name_prefix="torch-pim") if threads > 1 else None

    def run(self, kernel: RangeKernel, iterations: int) -> None:
        """Runs [0, iterations) and returns when all of it is done; an error of any part is raised then.

        A kernel says how much it does by an attribute `accesses` (see BoundKernel); one without it is taken for large.
        """
        if self._closed:
            raise RuntimeError("this host pool is closed: open a new one to run more nests")
        shares = min(self.threads, max(iterations, 1))
        accesses = getattr(kernel, "accesses", None)
        if accesses is not None:
            shares = max(1, min(shares, accesses // ACCESSES_PER_SHARE))
        if shares == 1 or self._workers is None:
            kernel(0, iterations)
            return
        cuts = [iterations * share // shares for share in range(shares + 1)]
        futures: list[Future[None]] = [self._workers.submit(kernel, lo, hi) for lo, hi in pairwise(cuts[1:])]
        try:
            kernel(cuts[0], cuts[1])
        finally:
            wait(futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        """Waits for running nests and ends the workers; further runs are refused. Closing twice does nothing."""
        self._closed = True
        if self._workers is not None:
            self._workers.shutdown(wait=True)

    def __enter__(self) -> HostPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
