"""The fingerprint of a policy: what a compile cache must key on besides the program."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from importlib.resources.abc import Traversable

from torch_pim.features.machines import digest
from torch_pim.features.placement import PlacementProblem
from torch_pim.models.learned.inputs import MODEL_SCHEMA

Option = str | int | float | bool | None


def policy_fingerprint(
    name: str, problem: PlacementProblem, options: Mapping[str, Option], bundle_digest: str | None = None
) -> str:
    """sha256 over code, bundle, schema, machines, profiles, objective and options, as hexadecimal digits."""
    content = {
        "policy": name,
        "code": code_version(),
        "bundle": bundle_digest,
        "schema": MODEL_SCHEMA.sha256,
        "host": digest(problem.host),
        "device": digest(problem.device),
        "profiles": profiles_digest(problem),
        "objective": problem.objective,
        "options": dict(options),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def profiles_digest(problem: PlacementProblem) -> str:
    """sha256 of all profiles in nest order; a NaN counts as itself, so equal profiles have equal digests."""
    content = [None if profile is None else asdict(profile) for profile in problem.profiles]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@functools.cache
def code_version() -> str:
    """sha256 of the sources of the rooms that decide: any change of code is a new policy, forgotten by nobody."""
    found = hashlib.sha256()
    for room in ("torch_pim.features", "torch_pim.models"):
        for name, content in sorted(_sources(resources.files(room), room)):
            found.update(f"{name} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()


def _sources(folder: Traversable, name: str) -> list[tuple[str, bytes]]:
    sources: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.name.startswith("__"):
            sources += _sources(entry, f"{name}.{entry.name}")
        elif entry.name.endswith(".py"):
            sources.append((f"{name}.{entry.name}", entry.read_bytes()))
    return sources
