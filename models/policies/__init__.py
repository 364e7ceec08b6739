"""Placement policies, one file each. `create_policy` makes one by name."""

from __future__ import annotations

import os

from torch_pim.models.errors import PolicyError
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.policies.policy import OnModelError, Policy, PolicyFactory, PolicyRequest
from torch_pim.models.policies.registry import policy_factory, policy_names


def create_policy(
    name: str,
    *,
    bundle: Bundle | str | os.PathLike[str] | None = None,
    seed: int = 0,
    on_model_error: OnModelError = "fallback",
) -> Policy:
    """A policy by name, see `policy_names`.

    `bundle` is a loaded bundle or its folder; None means the default bundle for the learned policies and constants from
    the specifications for `cost-model`. `seed` is for `random`. With on_model_error="fallback" a bundle that cannot be
    used gives one ModelWarning and the cost model decides; with "error" its ModelError is raised. Raises PolicyError
    for an unknown name or option.
    """
    if on_model_error not in ("fallback", "error"):
        raise PolicyError(f"on_model_error {on_model_error!r}: expected 'fallback' or 'error'")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise PolicyError(f"seed {seed!r}: expected an integer")
    policy = policy_factory(name)(PolicyRequest(name, bundle, seed, on_model_error))
    if not isinstance(policy, Policy):
        raise PolicyError(f"the factory of policy {name!r} made {policy!r}: expected name, place and fingerprint")
    return policy


__all__ = ["OnModelError", "Policy", "PolicyFactory", "PolicyRequest", "create_policy", "policy_names"]
