"""The feature vector, group by group: the same functions serve training and compilation.

Each group has its columns and a function that computes their values in the same order. Values are finite, except
that a profile column is NaN where nothing was measured. Names, hashes and operators of a nest play no part.
"""

from __future__ import annotations

from torch_pim.features.analysis.facts import nest_facts
from torch_pim.features.columns import feature
from torch_pim.features.columns.machine_facts import MachineFacts
from torch_pim.features.columns.machines import DEVICE_FEATURES, HOST_FEATURES, RATIO_FEATURES
from torch_pim.features.columns.nest_memory import MEMORY_FEATURES
from torch_pim.features.columns.nest_on_machines import NEST_ON_MACHINE_FEATURES
from torch_pim.features.columns.nest_patterns import PATTERN_FEATURES
from torch_pim.features.columns.nest_work import WORK_FEATURES
from torch_pim.features.columns.profile import PROFILE_FEATURES, ProfileFacts
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.profile import HostProfile
from torch_pim.features.schema import FeatureColumn

FEATURE_VERSION = 1
"""Version of these columns, for Schema. Raise it when a column's meaning changes under the same name and unit."""

_NEST = (*WORK_FEATURES, *MEMORY_FEATURES, *PATTERN_FEATURES)
_MACHINE = (*HOST_FEATURES, *DEVICE_FEATURES, *RATIO_FEATURES, *NEST_ON_MACHINE_FEATURES)


def nest_columns() -> tuple[FeatureColumn, ...]:
    """Columns of `nest_values`."""
    return feature.columns(_NEST)


def nest_values(nest: LoopNest) -> tuple[float, ...]:
    """Static features of a concrete nest; raises UnboundSymbolError for a symbolic one."""
    return feature.values(_NEST, nest_facts(nest))


def profile_columns() -> tuple[FeatureColumn, ...]:
    """Columns of `profile_values`."""
    return feature.columns(PROFILE_FEATURES)


def profile_values(profile: HostProfile | None, nest: LoopNest) -> tuple[float, ...]:
    """Features of a profile of the nest; without one, NaN everywhere but in the flags of its origin."""
    return feature.values(PROFILE_FEATURES, ProfileFacts(profile, nest_facts(nest)))


def machine_columns() -> tuple[FeatureColumn, ...]:
    """Columns of `machine_values`."""
    return feature.columns(_MACHINE)


def machine_values(host: HostSpec, device: DeviceSpec, nest: LoopNest) -> tuple[float, ...]:
    """Features of both machines, of one over the other, and of the nest against them."""
    return feature.values(_MACHINE, MachineFacts(host, device, nest_facts(nest)))
