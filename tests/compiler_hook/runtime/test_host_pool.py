"""Splitting nests over threads of the host."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_pim.compiler_hook.runtime.host_pool import ACCESSES_PER_SHARE, HostPool


class Recorder:
    """A range kernel that counts how often each iteration runs, and on which thread."""

    def __init__(self, iterations: int, accesses: int | None = None) -> None:
        self.runs = np.zeros(iterations, int)
        self.threads: set[int] = set()
        self.parts: list[tuple[int, int]] = []
        if accesses is not None:
            self.accesses = accesses

    def __call__(self, lo: int, hi: int) -> None:
        self.runs[lo:hi] += 1
        self.threads.add(threading.get_ident())
        self.parts.append((lo, hi))


@settings(max_examples=30, deadline=None)
@given(threads=st.integers(1, 5), iterations=st.integers(1, 50), accesses=st.none() | st.integers(0, 10**7))
def test_every_iteration_runs_once(threads, iterations, accesses):
    kernel = Recorder(iterations, accesses)
    with HostPool(threads) as pool:
        pool.run(kernel, iterations)
    assert (kernel.runs == 1).all()
    assert len(kernel.parts) <= min(threads, iterations)


def test_small_nests_stay_on_the_calling_thread():
    with HostPool(4) as pool:
        small = Recorder(1000, 2 * ACCESSES_PER_SHARE - 1)
        pool.run(small, 1000)
        assert small.parts == [(0, 1000)]
        assert small.threads == {threading.get_ident()}
        large = Recorder(1000, 3 * ACCESSES_PER_SHARE)
        pool.run(large, 1000)
        assert sorted(large.parts) == [(0, 333), (333, 666), (666, 1000)]
        assert threading.get_ident() in large.threads


def test_empty_range():
    kernel = Recorder(0)
    with HostPool(3) as pool:
        pool.run(kernel, 0)
    assert kernel.parts == [(0, 0)]


@pytest.mark.parametrize("failing", [0, 2])
def test_errors_are_raised_after_all_parts_have_ended(failing):
    ended: list[int] = []

    def kernel(lo: int, hi: int) -> None:
        if lo == failing:
            raise ArithmeticError(f"part {lo}")
        time.sleep(0.02)
        ended.append(lo)

    with HostPool(4) as pool, pytest.raises(ArithmeticError, match=f"part {failing}"):
        pool.run(kernel, 4)
    assert sorted(ended) == [lo for lo in range(4) if lo != failing]


def test_several_threads_share_one_pool():
    with HostPool(3) as pool:
        kernels = [Recorder(999) for _ in range(20)]
        threads = [threading.Thread(target=pool.run, args=(kernel, 999)) for kernel in kernels]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all((kernel.runs == 1).all() for kernel in kernels)


def test_closing():
    pool = HostPool(2)
    pool.run(Recorder(2), 2)
    pool.close()
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.run(Recorder(2), 2)


def test_thread_count_is_checked():
    with pytest.raises(ValueError, match="at least 1 thread, found 0"):
        HostPool(0)
