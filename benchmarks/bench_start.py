"""How long a user waits before anything happens: start of the command, listing of plug-ins."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from torch_pim.compiler_hook import registry


@pytest.mark.parametrize("argument", ["--version", "--help"])
def bench_command_start(benchmark: BenchmarkFixture, argument: str) -> None:
    command = [sys.executable, "-P", "-m", "torch_pim.compiler_hook.cli", argument]
    benchmark(subprocess.run, command, check=True, capture_output=True)


def bench_device_names(benchmark: BenchmarkFixture) -> None:
    assert benchmark(registry.devices.names)
