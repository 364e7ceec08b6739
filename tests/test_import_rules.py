"""Who may import whom, and what an import of the compiler may load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TRAINING = ("mlflow", "xgboost", "sklearn", "pandas")
ROOMS = ("features", "models", "compiler_hook")

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


def test_rooms_import_one_way(run_python: RunPython) -> None:
    code = (
        "import sys; from importlinter.cli import lint_imports;"
        f"sys.exit(lint_imports(config_filename={str(ROOT / 'pyproject.toml')!r}, cache_dir=None, no_cache=True))"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_of_the_compiler_loads_the_training_stack(room: str, run_python: RunPython) -> None:
    code = f"""
import importlib, pkgutil, sys
import torch_pim.{room} as room
names = [m.name for m in pkgutil.walk_packages(room.__path__, room.__name__ + ".") if not m.name.endswith("__main__")]
assert names
for name in names:
    importlib.import_module(name)
print(sorted(set({TRAINING!r}) & set(sys.modules)))
"""
    done = run_python("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_the_hook_alone_loads_no_torch(run_python: RunPython) -> None:
    done = run_python(
        "-c", "import sys, torch_pim.compiler_hook; print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False False\n"


def test_the_suite_runs_on_one_copy_of_the_package() -> None:
    # The root of the repository on sys.path would import every room a second time, under its bare name.
    assert str(ROOT) not in sys.path
    for room in (*ROOMS, "pim_emulator", "experiments"):
        assert room not in sys.modules
