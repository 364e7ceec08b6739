"""The emulated device runs nests for real, split over its cores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.compiler_hook.codegen.arguments import allocate_arguments
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.codegen.memref import MemRefValue
from torch_pim.compiler_hook.errors import DeviceError
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.protocols import Device
from torch_pim.features.specs import load_device
from torch_pim.pim_emulator.device import EmulatedDevice, emulated_device

Lowered = Callable[..., tuple[ConcreteNest, ...]]
SPEC = load_device("ndp-hmc-64")


def array_of(value: object) -> np.ndarray:
    assert isinstance(value, MemRefValue)
    start = value.pointer - value.owner.ctypes.data
    return value.owner[start : start + 4 * int(np.prod(value.shape))].view(np.float32).reshape(value.shape)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_product_split_over_cores_equals_numpy(lowered: Lowered, threads: int) -> None:
    (nest,) = lowered("matmul")
    arguments = allocate_arguments(nest, 4)
    result, left, right = (array_of(a) for a in arguments)
    expected = left.astype(np.float64) @ right.astype(np.float64)
    result[:] = np.nan
    kernel = KernelLibrary.compile([nest.function]).kernel(nest.function.code_hash).bind(arguments)
    blocks = EmulatedDevice(SPEC, threads).run(kernel, kernel.iterations)
    assert len(blocks) == 64
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "transpose"])
def test_results_equal_pytorch(lowered: Lowered, name: str) -> None:
    (nest,) = lowered(name)
    arguments = allocate_arguments(nest, 1)
    arrays = [array_of(a) for a in arguments]
    kernel = KernelLibrary.compile([nest.function]).kernel(nest.function.code_hash).bind(arguments)
    source = next(a for a in arrays if a.shape == (24, 40)) if name == "transpose" else arrays[1]
    before = torch.from_numpy(source.copy())
    emulated_device(SPEC).run(kernel, kernel.iterations)
    expected = torch.softmax(before, -1) if name == "softmax" else before.T
    assert any(
        a.shape == tuple(expected.shape) and np.allclose(a, expected.numpy(), rtol=1e-5, atol=1e-6) for a in arrays
    )


@given(st.integers(0, 500), st.integers(1, 300))
def test_blocks_partition_the_range(iterations: int, cores: int) -> None:
    blocks = EmulatedDevice(replace(SPEC, cores=cores)).blocks(iterations)
    assert [i for low, high in blocks for i in range(low, high)] == list(range(iterations))
    assert len(blocks) == min(cores, iterations)
    sizes = {high - low for low, high in blocks}
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert 0 not in sizes


@pytest.mark.parametrize("threads", [1, 4])
def test_blocks_that_ran_are_returned(threads: int) -> None:
    seen: list[tuple[int, int]] = []
    blocks = EmulatedDevice(SPEC, threads).run(lambda low, high: seen.append((low, high)), 1000)
    assert tuple(sorted(seen)) == blocks
    assert EmulatedDevice(SPEC, threads).run(lambda low, high: seen.append((low, high)), 0) == ()


def test_threads_run_side_by_side() -> None:
    together = threading.Barrier(2, timeout=10)
    EmulatedDevice(replace(SPEC, cores=2), threads=2).run(lambda low, high: together.wait() and None, 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_the_kernel_ends_the_run(threads: int) -> None:
    started: list[int] = []

    def kernel(low: int, high: int) -> None:
        started.append(low)
        if low == 0:
            raise ZeroDivisionError("boom")
        time.sleep(0.01)

    with pytest.raises(ZeroDivisionError, match="boom"):
        EmulatedDevice(SPEC, threads).run(kernel, 64)
    assert len(started) < 10


def test_bad_calls() -> None:
    with pytest.raises(DeviceError, match="threads is 0"):
        EmulatedDevice(SPEC, threads=0)
    with pytest.raises(DeviceError, match="cannot run -1 iterations"):
        emulated_device(SPEC).run(lambda low, high: None, -1)


def test_supports(lowered: Lowered) -> None:
    matmul, double, serial, rows = lowered("matmul", "double", "cumulative", "rows")
    device = emulated_device(SPEC)
    assert isinstance(device, Device)
    assert device.supports(matmul) is None
    assert device.supports(double) is None
    assert "not partitionable" in str(device.supports(serial))
    single = emulated_device(replace(SPEC, name="small", supported_types=("f32",), capacity_bytes=5000))
    assert single.supports(double) == "element type f64 is not supported by small"
    assert single.supports(rows) == "element type i64 is not supported by small"
    assert single.supports(matmul) == f"its buffers take {(24 * 16 + 16 * 40 + 24 * 40) * 4} bytes, small holds 5000"


def test_the_device_loads_no_simulator(run_python: Callable[..., Any]) -> None:
    done = run_python("-c", "import sys, torch_pim.pim_emulator.device; print({'numba', 'scipy'} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr
