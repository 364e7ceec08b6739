"""Profiles of a file that fit a model on a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.features.machines import HostSpec
from torch_pim.features.profile import HostProfile
from torch_pim.features.profile_io import read_profiles


def usable_profiles(path: Path, code_hashes: Iterable[str], host: HostSpec) -> Mapping[str, HostProfile]:
    """Code hash -> profile of `host`. Raises ProfileError for a bad file, and OptionError if no profile fits."""
    profiles = read_profiles(path)
    known = set(code_hashes)
    found = {p.code_hash: p for p in profiles if p.host_id == host.identity and p.code_hash in known}
    if not found:
        hosts = sorted({profile.host_id for profile in profiles})
        if host.identity in hosts:
            reason = "none of them is of a nest of this model; make them with torch-pim profile"
        else:
            reason = f"they are of {', '.join(hosts) or 'no host'}, not of {host.identity}"
        raise OptionError(f"no profile in {path} can be used: {reason}")
    return found
