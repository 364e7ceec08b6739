"""What the tests of the hook share: lowering of plain functions and of MLIR text, and a plug-in that is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from torch_pim.compiler_hook.frontend.mlir_text import parse_linalg
from torch_pim.compiler_hook.lowered import LoweredProgram, lower_model, lower_module

SOURCE = Path(__file__).parent.parent / "fixtures" / "example_plugin"


@pytest.fixture(scope="session")
def installed_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that holds the installed distribution `torch-pim-example`; put it on the path to have the plug-in."""
    # A copy, because building leaves files beside the sources.
    source = shutil.copytree(SOURCE, tmp_path_factory.mktemp("source") / "plugin")
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*pip, "--target", str(target), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@pytest.fixture(scope="session")
def lower() -> Callable[..., LoweredProgram]:
    """`lower(function, *arguments, dynamic_shapes=None)`: the program of a function of tensors."""

    def lowered(function: Callable[..., Any], *arguments: Any, dynamic_shapes: Any = None) -> LoweredProgram:
        # A function of *arguments has one parameter, the tuple.
        shapes = None if dynamic_shapes is None else (dynamic_shapes,)
        return lower_model(_Function(function), arguments, dynamic_shapes=shapes)

    return lowered


@pytest.fixture(scope="session")
def lower_text() -> Callable[[str], LoweredProgram]:
    """`lower_text(mlir)`: the program of a linalg-on-tensors module with one function."""
    return lambda text: lower_module(parse_linalg(text))[0]
