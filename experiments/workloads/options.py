"""Options of a workload: one frozen dataclass is at once the configuration, its check and its documentation."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Literal, TypeVar, get_args, get_origin, get_type_hints

import torch

from torch_pim.compiler_hook.errors import OptionError

DType = Literal["f32", "f16", "bf16"]
Phase = Literal["prefill", "decode"]

TORCH_DTYPES: Mapping[str, torch.dtype] = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

OptionValue = str | int
OptionsT = TypeVar("OptionsT")


def about(description: str, minimum: int = 1) -> Mapping[str, str | int]:
    """Metadata of an option's dataclass field: its help text, and the smallest accepted value of an integer."""
    return {"description": description, "minimum": minimum}


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """What a user may set: its name, the accepted values, the default and a description."""

    name: str
    choices: tuple[str, ...]
    """Empty for an integer."""
    default: OptionValue
    description: str
    minimum: int


def option_infos(defaults: object) -> tuple[OptionInfo, ...]:
    """One entry per field of an options dataclass, in order of declaration."""
    hints = get_type_hints(type(defaults))
    found = []
    for entry in fields(defaults):  # type: ignore[arg-type]
        hint = hints[entry.name]
        choices = tuple(get_args(hint)) if get_origin(hint) is Literal else ()
        if entry.default is MISSING or (not choices and hint is not int):
            raise TypeError(f"{type(defaults).__name__}.{entry.name}: expected an int or Literal with a default")
        found.append(
            OptionInfo(
                entry.name,
                choices,
                getattr(defaults, entry.name),
                str(entry.metadata.get("description", "")),
                int(entry.metadata.get("minimum", 1)),
            )
        )
    return tuple(found)


def apply_options(owner: str, defaults: OptionsT, given: Mapping[str, OptionValue]) -> OptionsT:
    """A copy of `defaults` with the given values, checked and converted; raises OptionError naming `owner`."""
    known = {info.name: info for info in option_infos(defaults)}
    values: dict[str, OptionValue] = {}
    for name, value in given.items():
        info = known.get(name)
        if info is None:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(known) or 'no options'}"
            raise OptionError(f"workload {owner!r} has no option {name!r}: {hint}")
        values[name] = _convert(owner, info, value)
    return replace(defaults, **values)  # type: ignore[type-var]


def _convert(owner: str, info: OptionInfo, value: OptionValue) -> OptionValue:
    if info.choices:
        if value not in info.choices:
            close = difflib.get_close_matches(str(value), info.choices, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            expected = ", ".join(info.choices)
            raise OptionError(
                f"workload {owner!r}: option {info.name!r} is {value!r}, expected one of {expected}{hint}"
            )
        return value
    try:
        number = int(value)
    except ValueError:
        raise OptionError(f"workload {owner!r}: option {info.name!r} is {value!r}, expected an integer") from None
    if isinstance(value, bool) or number < info.minimum:
        raise OptionError(f"workload {owner!r}: option {info.name!r} is {value!r}, expected at least {info.minimum}")
    return number
