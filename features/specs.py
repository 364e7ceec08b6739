"""Machine specifications from TOML: presets by name, files by path, and errors that say how to mend the file.

A file is flat: one key per field of HostSpec or DeviceSpec, and a table `[sources]` that says for each of them where
the value comes from (`assumed: why` for a value that nobody has checked).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.spec_checks import number_problem, relation_problems
from torch_pim.features.suggest import did_you_mean

PRESETS = Path(__file__).parent / "presets"

_Spec = TypeVar("_Spec", HostSpec, DeviceSpec)


class SpecError(ValueError):
    """A machine specification that is unknown, unreadable or impossible; names file, key and mend."""


def host_presets() -> tuple[str, ...]:
    """Names of the hosts that ship with Torch-PIM, sorted."""
    return _names("hosts")


def device_presets() -> tuple[str, ...]:
    """Names of the PIM devices that ship with Torch-PIM, sorted."""
    return _names("devices")


def load_host(name_or_path: str | Path) -> HostSpec:
    """Host from a preset name or from the path of a TOML file; raises SpecError."""
    return _load(HostSpec, _find(name_or_path, "hosts"))


def load_device(name_or_path: str | Path) -> DeviceSpec:
    """PIM device from a preset name or from the path of a TOML file; raises SpecError."""
    return _load(DeviceSpec, _find(name_or_path, "devices"))


def parse_host(text: str, file: str) -> HostSpec:
    """Host from TOML text; `file` names it in errors. Raises SpecError."""
    return _parse(HostSpec, text, file)


def parse_device(text: str, file: str) -> DeviceSpec:
    """PIM device from TOML text; `file` names it in errors. Raises SpecError."""
    return _parse(DeviceSpec, text, file)


def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (PRESETS / folder).glob("*.toml")))


def _find(name_or_path: str | Path, folder: str) -> Path:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text or "\\" in text:
        return Path(name_or_path)
    names = _names(folder)
    if text not in names:
        kind = folder.removesuffix("s")
        raise SpecError(
            f"unknown {kind} {text!r}{did_you_mean(text, names)}; expected one of {', '.join(names)}, or a .toml file"
        )
    return PRESETS / folder / f"{text}.toml"


def _load(kind: type[_Spec], path: Path) -> _Spec:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot read the machine specification {path}: {error}") from error
    return _parse(kind, text, str(path))


def _parse(kind: type[_Spec], text: str, file: str) -> _Spec:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{file}: not valid TOML: {error}") from error
    sources = table.pop("sources", None)
    if not isinstance(sources, dict):
        raise SpecError(f"{file}: key 'sources': expected a table [sources] with one text for each constant")
    names = [f.name for f in fields(kind) if f.name != "sources"]
    _check_keys(file, table, names, what="key")
    _check_keys(file, sources, [n for n in names if n != "name"], what="source of")
    types = {f.name: str(f.type) for f in fields(kind)}
    values = {name: _value(file, name, types[name], table[name]) for name in names}
    for name, source in sources.items():
        if not isinstance(source, str) or not source.strip():
            raise SpecError(f"{file}: source of {name!r}: expected a text, or 'assumed: why'; got {source!r}")
    spec = kind(**values, sources=dict(sources))
    for name, problem in relation_problems(spec):
        raise SpecError(f"{file}: key {name!r}: {problem}")
    return spec


def _check_keys(file: str, table: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    expected = list(names)
    missing = [name for name in expected if name not in table]
    for key in table:
        if key not in expected:
            raise SpecError(f"{file}: {what} {key!r} is unknown{did_you_mean(key, missing or expected)}")
    if missing:
        raise SpecError(f"{file}: {what} {missing[0]!r} is missing; expected it beside {', '.join(expected)}")


def _value(file: str, name: str, kind: str, value: Any) -> Any:
    """The value in the type of the field (`str`, `int`, `float` or a tuple of strings)."""
    if kind == "str":
        if isinstance(value, str) and value.strip():
            return value
        raise SpecError(f"{file}: key {name!r}: expected a text that is not empty, got {value!r}")
    if kind.startswith("tuple"):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise SpecError(f"{file}: key {name!r}: expected a list of texts, got {value!r}")
    wanted = (int,) if kind == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        noun = "an integer" if kind == "int" else "a number"
        raise SpecError(f"{file}: key {name!r}: expected {noun}, got {value!r} ({type(value).__name__})")
    problem = number_problem(name, value)
    if problem:
        raise SpecError(f"{file}: key {name!r}: {problem}, got {value}")
    return value if kind == "int" else float(value)
