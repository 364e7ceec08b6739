"""The installed distribution: entry points, data files, pins."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import EntryPoint
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import torch_pim

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENTRY_POINTS = [
    *(EntryPoint(name, value, "console_scripts") for name, value in PROJECT["scripts"].items()),
    *(
        EntryPoint(name, value, group)
        for group, points in PROJECT["entry-points"].items()
        for name, value in points.items()
    ),
]


@pytest.mark.parametrize("point", ENTRY_POINTS, ids=lambda point: f"{point.group}:{point.name}")
def test_every_entry_point_leads_somewhere(point: EntryPoint) -> None:
    assert point.load() is not None


def test_data_files_come_with_the_package() -> None:
    package = files(torch_pim)
    for source, name in (("features/presets", "*.toml"), ("models/artifacts", "*.json"), ("models/artifacts", "*.md")):
        wanted = [path.relative_to(ROOT) for path in (ROOT / source).rglob(name)]
        assert wanted, f"no {name} under {source}"
        for path in wanted:
            assert package.joinpath(*path.parts).is_file(), f"{path} is missing from the installed package"
    assert package.joinpath("py.typed").is_file()


def test_every_module_comes_with_the_package() -> None:
    package = files(torch_pim)
    for room in ("features", "models", "compiler_hook", "pim_emulator", "experiments"):
        for path in (ROOT / room).rglob("*.py"):
            relative = path.relative_to(ROOT)
            assert package.joinpath(*relative.parts).is_file(), f"{relative} is missing: has its folder an __init__.py?"


def test_every_direct_dependency_is_pinned() -> None:
    pins = {
        name.lower().replace("_", "-")
        for name in re.findall(r"^([\w.-]+)==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    }
    requirements = [
        *PROJECT["dependencies"],
        *(r for extra in PROJECT["optional-dependencies"].values() for r in extra),
    ]
    for requirement in requirements:
        name = re.match(r"[\w.-]+", requirement)
        assert name is not None
        assert name.group().lower().replace("_", "-") in pins, requirement


def test_pins_name_no_place() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"#.*|[\w.-]+==[\w.]+", line), line
