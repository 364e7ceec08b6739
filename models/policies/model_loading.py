"""Finding the bundle that a policy was asked to use, and what happens when it cannot be used."""

from __future__ import annotations

import warnings

from torch_pim.models.artifacts import default_bundle_path
from torch_pim.models.errors import ModelError, ModelWarning
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.policies.policy import PolicyRequest


def load_bundle(request: PolicyRequest) -> Bundle | None:
    """The requested bundle, or the default one where none was named.

    A bundle that cannot be used raises its ModelError under on_model_error="error"; under "fallback" it gives one
    ModelWarning with the class, the mend and what decides instead, and None.
    """
    if isinstance(request.bundle, Bundle):
        return request.bundle
    try:
        return Bundle.load(request.bundle if request.bundle is not None else default_bundle_path())
    except ModelError as error:
        if request.on_model_error == "error":
            raise
        warnings.warn(
            f"policy {request.name!r} decides by the cost model with constants from the specifications, because its "
            f"model cannot be used ({type(error).__name__}: {error})",
            ModelWarning,
            stacklevel=4,
        )
        return None
