"""The golden-file fixture itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Compare = Callable[..., None]


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Compare:
    plugin = next(p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "compare_with_golden"))
    return plugin.compare_with_golden


def test_a_missing_file_tells_the_flag(compare: Compare, tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"missing: run pytest with --update-golden"):
        compare(tmp_path / "room" / "a.txt", "text", update=False)


def test_update_writes_and_the_next_run_agrees(compare: Compare, tmp_path: Path) -> None:
    path = tmp_path / "room" / "a.txt"
    compare(path, "line µ\n\n", update=True)
    assert path.read_bytes() == "line µ\n".encode()
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]
    compare(path, "line µ", update=False)


def test_a_difference_is_shown_and_leaves_the_file(compare: Compare, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    compare(path, "one\ntwo", update=True)
    with pytest.raises(pytest.fail.Exception) as caught:
        compare(path, "one\n2", update=False)
    message = str(caught.value)
    assert "-two" in message
    assert "+2" in message
    assert "--update-golden" in message
    assert path.read_text() == "one\ntwo\n"
