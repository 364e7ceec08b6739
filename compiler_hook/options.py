"""The options of a compilation: what `torch.compile(..., options=...)` and the command line may set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.models.errors import did_you_mean

OnModelError = Literal["fallback", "error"]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Everything that a compilation depends on beside the model itself. Equal options compare and hash equal."""

    device: str = "ndp-hmc-64"
    """Name of a device preset, or path of a device's TOML file."""
    host: str = "cpu-8c"
    """Name of a host preset, or path of a host's TOML file."""
    policy: str = "learned"
    """Name of a policy, ours or a plug-in's."""
    bundle: Path | None = None
    """Folder of the model that a learned policy asks; None is the one that ships with Torch-PIM."""
    on_model_error: OnModelError = "fallback"
    """Whether a model that cannot be used gives way to the next policy in the chain, or stops the compilation."""
    profile: Path | None = None
    """File of saved host profiles; None compiles without measured profiles."""
    seed: int = 0
    """Seed of everything that draws random numbers; at least 0."""
    threads: int | None = None
    """Threads of host nests, at least 1; None is one per available core."""

    def __post_init__(self) -> None:
        for name, (expected, is_valid) in _EXPECTED.items():
            value = getattr(self, name)
            if not is_valid(value):
                raise OptionError(f"option {name!r}: expected {expected}, got {value!r}")

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> CompileOptions:
        """Options from keys and plain values; paths may be text. Absent keys keep their defaults.

        Raises OptionError for an unknown key (with the closest known one) and for a value of the wrong type.
        """
        known = {field.name for field in fields(cls)}
        for key in options:
            if key not in known:
                raise OptionError(f"unknown option {key!r}.{did_you_mean(str(key), known)}")
        return cls(**{key: _plain(key, value) for key, value in options.items()})


def _plain(key: str, value: Any) -> Any:
    if key in ("bundle", "profile") and isinstance(value, str | os.PathLike) and os.fspath(value):
        return Path(value)
    if key in ("device", "host") and isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_path_or_none(value: object) -> bool:
    return value is None or isinstance(value, Path)


def _is_integer(value: object, minimum: int) -> bool:
    # True and False are integers to Python, but not to a reader.
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum


_EXPECTED: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "device": ("the name of a device preset or the path of a TOML file", _is_text),
    "host": ("the name of a host preset or the path of a TOML file", _is_text),
    "policy": ("the name of a policy", _is_text),
    "bundle": ("the path of a model bundle, or None for the default one", _is_path_or_none),
    "on_model_error": ("'fallback' or 'error'", lambda value: value in get_args(OnModelError)),
    "profile": ("the path of a file of host profiles, or None", _is_path_or_none),
    "seed": ("an integer of at least 0", lambda value: _is_integer(value, 0)),
    "threads": ("an integer of at least 1, or None for one per core", lambda v: v is None or _is_integer(v, 1)),
}
