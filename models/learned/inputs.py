"""The input of learned models: one row per nest and pair of machines, the same in training and at compile time."""

from __future__ import annotations

import math
from collections.abc import Iterable

from torch_pim.features.columns.machines import DEVICE_FEATURES, HOST_FEATURES
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.placement import PlacementProblem
from torch_pim.features.profile import HostProfile
from torch_pim.features.schema import Schema
from torch_pim.features.vector import (
    FEATURE_VERSION,
    machine_columns,
    machine_values,
    nest_columns,
    nest_values,
    profile_columns,
    profile_values,
)
from torch_pim.models.cost_model.estimate import CostEstimate, ratio_columns, ratio_values
from torch_pim.models.cost_model.model import COST_MODEL_VERSION, CostModel

SCHEMA_VERSION = 100 * FEATURE_VERSION + COST_MODEL_VERSION
"""Rises when a feature's meaning or a formula of the cost model changes under the same column name and unit."""

MACHINE_COLUMNS = frozenset(f.column.name for f in (*HOST_FEATURES, *DEVICE_FEATURES))
"""Columns that depend on the machines alone."""

MODEL_SCHEMA = Schema(SCHEMA_VERSION, (*nest_columns(), *profile_columns(), *machine_columns(), *ratio_columns()))


def model_row(
    nest: LoopNest, profile: HostProfile | None, host: HostSpec, device: DeviceSpec, cost_model: CostModel
) -> tuple[float, ...]:
    """One MODEL_SCHEMA row of a concrete nest. NaN is unmeasured.

    It depends on its arguments alone; the only measured numbers in it are those of the profile, and a profile of
    another host counts as none.
    """
    own = profile if profile is not None and profile.host_id == host.identity else None
    return (
        *nest_values(nest),
        *profile_values(own, nest),
        *machine_values(host, device, nest),
        *ratio_values(cost_model.estimate(nest, host, device, own)),
    )


def model_rows(problem: PlacementProblem, nests: Iterable[int], cost_model: CostModel) -> tuple[tuple[float, ...], ...]:
    """Rows of the given unique nests of a problem, with their profiles."""
    return tuple(
        model_row(problem.nests[index], problem.profiles[index], problem.host, problem.device, cost_model)
        for index in nests
    )


def residual_targets(estimate: CostEstimate, host_ns: float, device_ns: float) -> tuple[float, float]:
    """What residual regressors learn: ln(true time / estimated time) of host and device.

    The estimate must be the one whose ratios are in the row: same constants, same profile.
    """
    return math.log(host_ns / estimate.host_ns), math.log(device_ns / estimate.device_ns)
