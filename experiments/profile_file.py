"""Profiles of a file that fit a model on a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.compiler_hook.target import profiles_of
from torch_pim.features.machines import HostSpec
from torch_pim.features.profile import HostProfile


def usable_profiles(path: Path, code_hashes: Iterable[str], host: HostSpec) -> Mapping[str, HostProfile]:
    """Code hash -> profile of `host`. Raises ProfileError for a bad file, and OptionError if no profile fits."""
    known = set(code_hashes)
    found = {code_hash: profile for code_hash, profile in profiles_of(host, path).items() if code_hash in known}
    if not found:
        raise OptionError(f"no profile in {path} is of a nest of this model; make them with torch-pim profile")
    return found
