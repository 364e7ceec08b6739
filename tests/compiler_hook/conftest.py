"""A real plug-in, built and installed with pip into a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
