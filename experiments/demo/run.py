"""Runs the demo: every case lowered and compared on one pair of machines, then the small model executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.experiments.comparison.compare import compare
from torch_pim.experiments.comparison.profile_settings import NONE, ProfileSetting
from torch_pim.experiments.comparison.records import Comparison
from torch_pim.experiments.comparison.settings import CompareSettings
from torch_pim.experiments.demo.cases import DemoCase
from torch_pim.experiments.lowered_model import lower_reference
from torch_pim.experiments.workloads.language_models import OptionalDependencyError
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """A case with its comparison, or the reason why it was left out."""

    case: DemoCase
    comparison: Comparison | None
    left_out: str = ""


def demo_settings(policies: tuple[str, ...], options: CompileOptions) -> CompareSettings:
    """One pair of machines and no profiles: what torch.compile knows by default."""
    return CompareSettings.load(policies, (options.host,), (options.device,), (ProfileSetting(NONE),), options=options)


def compared_cases(
    cases: Sequence[DemoCase], settings: CompareSettings, timing: EmulatorTimingModel, progress: Progress
) -> Iterator[ComparedCase]:
    """One after the other, as they are done. A case that needs a package that is not installed is left out."""
    for number, case in enumerate(cases, start=1):
        progress(f"{case.label} ({number} of {len(cases)}): lowering at real shapes, without weights")
        try:
            model = lower_reference(case.workload, case.options)
        except OptionalDependencyError as error:
            yield ComparedCase(case, None, str(error))
            continue
        yield ComparedCase(case, compare(model, settings, timing, progress))
