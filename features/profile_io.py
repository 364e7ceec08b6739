"""Host profiles as JSON lines: one object per profile, NaN as null, nothing else accepted than what is written."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch_pim.features.profile import LOCALITY_BYTES, ORIGINS, HostProfile
from torch_pim.features.suggest import did_you_mean

_KEYS = tuple(f.name for f in fields(HostProfile))
_TEXTS = ("code_hash", "host_id")
_NUMBERS = tuple(name for name in _KEYS if {f.name: f.type for f in fields(HostProfile)}[name] == "float")


class ProfileError(ValueError):
    """A profile file that cannot be read or written as it is; names file, line, key and what was expected."""


def write_profiles(path: str | Path, profiles: Iterable[HostProfile]) -> None:
    """Writes the profiles in the given order; the file appears whole or not at all.

    Raises ProfileError for values that `read_profiles` would refuse.
    """
    target = Path(path)
    lines = []
    for number, profile in enumerate(profiles, start=1):
        line = _line(profile)
        _parse(json.loads(line), f"{target}: profile {number}")
        lines.append(line)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def read_profiles(path: str | Path) -> tuple[HostProfile, ...]:
    """All profiles of a file, in order. Raises ProfileError with the line number for anything unexpected:
    unknown or missing keys, NaN or infinity in any spelling but null, negative counters, wrong types.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot read the profiles in {path}: {error}") from error
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{path}, line {number}"
        try:
            data = json.loads(line, parse_constant=_refuse_constant, object_pairs_hook=_without_repeats)
        except ValueError as error:
            raise ProfileError(f"{place}: {error}") from error
        found.append(_parse(data, place))
    return tuple(found)


def digest(profiles: Iterable[HostProfile]) -> str:
    """sha256 over the profiles, whatever their order."""
    return hashlib.sha256("\n".join(sorted(map(_line, profiles))).encode()).hexdigest()


def _line(profile: HostProfile) -> str:
    values = {name: _null_for_nan(getattr(profile, name)) for name in _KEYS}
    return json.dumps(values, sort_keys=True)


def _null_for_nan(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_null_for_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number; write null for a value that was not measured")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object; keep one of them")
    return found


def _parse(data: Any, place: str) -> HostProfile:
    if not isinstance(data, dict):
        raise ProfileError(f"{place}: expected one JSON object per line, got {type(data).__name__}")
    for key in data:
        if key not in _KEYS:
            raise ProfileError(f"{place}: unknown key {key!r}{did_you_mean(key, _KEYS)}")
    for key in _KEYS:
        if key not in data:
            raise ProfileError(f"{place}: key {key!r} is missing; write null for a value that was not measured")
    checks: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(_TEXTS, _text),
        **dict.fromkeys(_NUMBERS, _number),
        "origin": _origin,
        "warm": _boolean,
        "repeats": _whole,
        "locality_curve": _curve,
    }
    values = {}
    for key in _KEYS:
        try:
            values[key] = checks[key](data[key])
        except ValueError as error:
            raise ProfileError(f"{place}: key {key!r}: {error}, got {data[key]!r}") from error
    return HostProfile(**values)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a text that is not empty")
    return value


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number, or null for a value that was not measured")
    if not math.isfinite(value) or value < 0:
        raise ValueError("expected a finite number that is not negative")
    return float(value)


def _origin(value: Any) -> str:
    if value not in ORIGINS:
        raise ValueError(f"expected one of {', '.join(ORIGINS)}")
    return str(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("expected an integer that is not negative")
    return value


def _curve(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != len(LOCALITY_BYTES):
        raise ValueError(f"expected a list of {len(LOCALITY_BYTES)} miss ratios, one per cache size")
    return tuple(_number(item) for item in value)
