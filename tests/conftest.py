"""What all tests share: golden files, processes that import the package under test, a cache folder of their own."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import torch_pim

# Before any test imports them: no test reaches for the network or reports usage.
os.environ.update(HF_HUB_OFFLINE="1", MLFLOW_DISABLE_TELEMETRY="true")

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
UPDATE = "--update-golden"
DIFF_LINES = 60

Golden = Callable[[str, str], None]
RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(UPDATE, action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden("room/name.txt", text)`: the text equals the file tests/golden/room/name.txt, line by line."""
    update = bool(request.config.getoption(UPDATE))
    return lambda name, text: compare_with_golden(GOLDEN / name, text, update)


def compare_with_golden(path: Path, text: str, update: bool) -> None:
    """Fails with a diff and the way to accept the new text; writes the file instead if `update`."""
    text = text.rstrip("\n") + "\n"
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".new")
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
        return
    if not path.is_file():
        pytest.fail(f"golden file {path} is missing: run pytest with {UPDATE}, read the file, and commit it")
    expected = path.read_text(encoding="utf-8")
    if text == expected:
        return
    diff = list(difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path), "result", lineterm=""))
    more = [f"... {len(diff) - DIFF_LINES} more lines"] if len(diff) > DIFF_LINES else []
    pytest.fail("\n".join([*diff[:DIFF_LINES], *more, f"If the change is meant: run pytest with {UPDATE} and commit."]))


@pytest.fixture(scope="session", autouse=True)
def _private_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests share one fresh cache folder, and none is left in the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_PIM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def run_python() -> RunPython:
    """`run_python("-c", code, environment={...})`: a fresh interpreter that imports the same torch_pim as the tests."""
    package_folder = str(Path(torch_pim.__file__).parent.parent)

    def run(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, **(environment or {})}
        paths = [variables.get("PYTHONPATH"), package_folder]
        variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        # -P: the working directory stays off sys.path, where it would offer a second copy of every room.
        return subprocess.run(
            [sys.executable, "-P", *arguments], env=variables, capture_output=True, text=True, timeout=300, check=False
        )

    return run
