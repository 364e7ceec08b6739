"""The fingerprint of a policy: what a compile cache must key on besides the program."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from torch_pim.features.machines import digest
from torch_pim.features.placement import PlacementProblem
from torch_pim.features.source_digest import source_digest
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
    return source_digest(("torch_pim.features", "torch_pim.models"))
