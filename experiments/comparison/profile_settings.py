"""Which host profiles policies are shown: none, simulated ones, or those of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.experiments.profile_file import usable_profiles
from torch_pim.features.machines import HostSpec
from torch_pim.features.profile import HostProfile
from torch_pim.pim_emulator.profiler import SimulatedProfiler
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

NONE = "none"
SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class ProfileSetting:
    """`none`, `simulated` (with the measurement noise of a profiled run), or the path of a profile file."""

    source: str
    seed: int = 0
    """Of the noise of simulated profiles."""

    def profiles(
        self, nests: Sequence[ConcreteNest], host: HostSpec, timing: EmulatorTimingModel
    ) -> Mapping[str, HostProfile]:
        """Code hash -> profile of `host`. Raises ProfileError for a bad file and OptionError if none of it fits."""
        if self.source == NONE:
            return {}
        if self.source == SIMULATED:
            found = SimulatedProfiler(host, self.seed, timing=timing).profile(nests)
            return {profile.code_hash: profile for profile in found}
        if not Path(self.source).is_file():
            raise OptionError(f"profile {self.source!r}: expected {SIMULATED}, {NONE}, or a file of torch-pim profile")
        return usable_profiles(Path(self.source), (nest.function.code_hash for nest in nests), host)
