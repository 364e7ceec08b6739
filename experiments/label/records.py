"""Frozen records as JSON text and back, driven by their type annotations."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from torch_pim.compiler_hook.errors import TorchPimError

RecordT = TypeVar("RecordT")


class RecordError(TorchPimError, ValueError):
    """A stored record does not fit its type."""


def encode(record: object) -> str:
    """Compact JSON with sorted keys: equal records give equal text. NaN is null, infinities are `inf` and `-inf`."""
    return json.dumps(_plain(asdict(record)), sort_keys=True, separators=(",", ":"), allow_nan=False)  # type: ignore[call-overload]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def decode(kind: type[RecordT], text: str) -> RecordT:
    """Inverse of `encode`; raises RecordError naming the field that does not fit."""
    try:
        found: RecordT = _build(kind, json.loads(text), kind.__name__)
        return found
    except json.JSONDecodeError as error:
        raise RecordError(f"{kind.__name__}: not JSON: {error}") from error


def _build(kind: Any, value: Any, where: str) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        if not isinstance(value, dict):
            raise RecordError(f"{where}: expected an object, got {type(value).__name__}")
        names = {field.name for field in fields(kind)}
        if set(value) != names:
            odd = sorted(set(value) ^ names)
            raise RecordError(f"{where}: missing or unknown fields {', '.join(odd)}; written by another version?")
        hints = get_type_hints(kind)
        made: Any = kind
        return made(**{name: _build(hints[name], value[name], f"{where}.{name}") for name in sorted(names)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(value, list):
            raise RecordError(f"{where}: expected a list, got {type(value).__name__}")
        if arguments[-1] is Ellipsis:
            return tuple(_build(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(value) != len(arguments):
            raise RecordError(f"{where}: expected {len(arguments)} items, got {len(value)}")
        return tuple(_build(a, item, where) for a, item in zip(arguments, value, strict=True))
    if origin is Literal:
        if value not in arguments:
            raise RecordError(f"{where}: {value!r} is none of {arguments}")
        return value
    if origin in (Union, types.UnionType):
        return _build_union(arguments, value, where)
    if kind is float and value in (None, "inf", "-inf"):
        return math.nan if value is None else float(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    expected = dict if origin is not None else kind
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise RecordError(f"{where}: expected {getattr(kind, '__name__', kind)}, got {value!r}")
    return value


def _build_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    for kind in kinds:
        try:
            return _build(kind, value, where)
        except RecordError:
            continue
    raise RecordError(f"{where}: {value!r} fits none of {', '.join(getattr(k, '__name__', str(k)) for k in kinds)}")
