from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from torch_pim.compiler_hook.cache_folder import (
    ENVIRONMENT_VARIABLE,
    CacheFolderWarning,
    cache_folder,
    find_cache_folder,
)


@pytest.fixture
def unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that nobody can make, root included: its parent is a file."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "cache"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(folder))
    return folder


def test_the_variable_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "new" / "cache"))
    folder = cache_folder("kernels")
    assert folder == tmp_path / "new" / "cache" / "kernels"
    assert folder.is_dir()
    found = find_cache_folder()
    assert (found.source, found.problem) == ("environment", None)


def test_a_relative_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "mine")
    assert find_cache_folder().path == tmp_path / "mine"


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_it_is_the_users_own(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    if value is None:
        monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    else:
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, value)
    found = find_cache_folder()
    assert found.source == "user"
    assert found.path.name == "torch-pim"
    assert found.path.is_relative_to(tmp_path)


def test_the_probe_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    assert find_cache_folder().problem is None
    assert list(tmp_path.iterdir()) == []


def test_an_unusable_folder_warns_once_and_falls_back(unusable: Path) -> None:
    assert find_cache_folder().problem == "Not a directory"
    with pytest.warns(CacheFolderWarning, match=f"{unusable} cannot be written .*{ENVIRONMENT_VARIABLE}"):
        first = cache_folder("kernels")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = cache_folder("traces")
    assert first.parent == second.parent
    (first / "x").write_text("can be written")
