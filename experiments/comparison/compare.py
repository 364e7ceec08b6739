"""Places one model under every policy on every pair of machines and charges all plans by one function."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from torch_pim.compiler_hook.compiled_graph import CompiledGraph
from torch_pim.compiler_hook.registry import create_device
from torch_pim.experiments.bounds import EmulatedNests, emulate, optimum_sides, oracle_sides
from torch_pim.experiments.comparison.profile_settings import ProfileSetting
from torch_pim.experiments.comparison.records import (
    OPTIMUM,
    ORACLE,
    Comparison,
    NestResult,
    PairComparison,
    PolicyResult,
)
from torch_pim.experiments.comparison.settings import CompareSettings
from torch_pim.experiments.lowered_model import LoweredModel
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.placement import PlacementProblem, Side
from torch_pim.models.plan_time import IsolatedTimes, plan_time
from torch_pim.models.transitions import Flush
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

FLUSH_MODELS: tuple[Flush, ...] = ("serial", "bandwidth")
ROUNDING = 1e-6
"""Relative. The minimum cut rounds costs to 30 bits, so another plan may be shorter by less than this."""

Sides = tuple[Side, ...]


class OptimumError(AssertionError):
    """A plan is faster than the optimum: a fault of Torch-PIM, never of the input."""


def compare(
    model: LoweredModel,
    settings: CompareSettings,
    timing: EmulatorTimingModel,
    progress: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """One PairComparison per host, device and profile setting, in this order.

    Raises CodegenError for a nest that cannot be emulated, and OptionError for profiles of which none fits.
    """
    pairs: list[PairComparison] = []
    for host in settings.hosts:
        for device in settings.devices:
            for setting in settings.profiles:
                progress(f"placing {model.name}: host {host.name}, device {device.name}, profile {setting.source}")
                pairs.append(_compare_pair(model, settings, timing, host, device, setting))
    return Comparison(model, tuple(pairs), timing.version)


def _compare_pair(
    model: LoweredModel,
    settings: CompareSettings,
    timing: EmulatorTimingModel,
    host: HostSpec,
    device: DeviceSpec,
    setting: ProfileSetting,
) -> PairComparison:
    nests = model.lowered.concrete_nests()
    profiles = setting.profiles(nests, host, timing)
    targets = {name: settings.target(policy, host, device, profiles) for name, policy in settings.policies.items()}
    placements = {name: CompiledGraph(model.lowered, target).place().placement for name, target in targets.items()}
    problem = model.lowered.problem(host, device, profiles)
    emulated = emulate(problem, nests, timing, create_device(device))
    times = emulated.times
    sides = {name: placement.sides() for name, placement in placements.items()}
    sides[ORACLE] = oracle_sides(problem, times)
    optima = {flush: optimum_sides(problem, times, flush) for flush in FLUSH_MODELS}
    return PairComparison(
        host=host,
        device=device,
        profile=setting.source,
        profiled_nests=sum(profile is not None for profile in problem.profiles),
        flush=settings.flush,
        results={f: policy_results(problem, times, {**sides, OPTIMUM: optima[f]}, f) for f in FLUSH_MODELS},
        nests=_nest_results(problem, emulated, {**sides, OPTIMUM: optima[settings.flush]}),
        fingerprints={name: placement.fingerprint for name, placement in placements.items()},
    )


def policy_results(
    problem: PlacementProblem, times: IsolatedTimes, sides: Mapping[str, Sides], flush: Flush
) -> dict[str, PolicyResult]:
    """Plan time, speedup and regrets of every entry of `sides`, which must hold the optimum under this flush model.

    Raises OptimumError if a plan is faster than the optimum by more than its rounding.
    """
    host: Side = "host"
    host_only = plan_time(problem, times, (host,) * len(problem.calls), flush)
    plans = {name: plan_time(problem, times, chosen, flush) for name, chosen in sides.items()}
    fastest_nests = math.fsum(min(times.host_ns[call.nest], times.device_ns[call.nest]) for call in problem.calls)
    optimum = plans[OPTIMUM]
    results = {}
    for name, plan in plans.items():
        regret = _ratio(plan.total_ns, optimum.total_ns) - 1.0
        if regret < -ROUNDING:
            raise OptimumError(f"policy {name} takes {plan.total_ns} ns, the optimum {optimum.total_ns} ns")
        results[name] = PolicyResult(
            plan=plan,
            speedup=_ratio(host_only.total_ns, plan.total_ns),
            nest_regret=_ratio(plan.execution_ns, fastest_nests) - 1.0,
            plan_regret=max(0.0, regret),
        )
    return results


def _ratio(time_ns: float, other_ns: float) -> float:
    """1 for a program without calls, whose times are all 0."""
    return time_ns / other_ns if other_ns > 0 else 1.0


def _nest_results(
    problem: PlacementProblem, emulated: EmulatedNests, sides: Mapping[str, Sequence[Side]]
) -> tuple[NestResult, ...]:
    calls = Counter(call.nest for call in problem.calls)
    on_pim = {
        name: Counter(call.nest for call, side in zip(problem.calls, chosen, strict=True) if side == "pim")
        for name, chosen in sides.items()
    }
    return tuple(
        NestResult(
            name=nest.name,
            kind=nest.kind,
            aten_operators=nest.aten_operators,
            code_hash=nest.code_hash,
            feature_hash=nest.feature_hash,
            calls=calls[number],
            partitionable=nest.partitionable,
            refused=emulated.refused[number],
            host=emulated.host[number],
            device=emulated.device[number],
            pim_calls={name: counted[number] for name, counted in on_pim.items()},
        )
        for number, nest in enumerate(problem.nests)
    )
