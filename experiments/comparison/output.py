"""A comparison as values for JSON. Names and meanings are those of the records; times in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_pim.compiler_hook.protocols import NestTiming
from torch_pim.experiments.comparison.records import Comparison, NestResult, PairComparison, PolicyResult
from torch_pim.experiments.provenance import machine_json, versions


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """`pairs` holds one entry per host, device and profile setting; machines stand once, under their names."""
    pairs = comparison.pairs
    return {
        "times": "modelled",
        "model": comparison.model.to_json(),
        "hosts": {pair.host.name: machine_json(pair.host) for pair in pairs},
        "devices": {pair.device.name: machine_json(pair.device) for pair in pairs},
        "versions": {**versions(), "emulator": comparison.emulator_version},
        "pairs": [pair_json(pair) for pair in pairs],
    }


def pair_json(pair: PairComparison) -> dict[str, Any]:
    """`policies` is the entry of `flush_models` for `flush`."""
    flush_models = {flush: _policies_json(results) for flush, results in pair.results.items()}
    return {
        "host": pair.host.name,
        "device": pair.device.name,
        "profile": pair.profile,
        "profiled_nests": pair.profiled_nests,
        "flush": pair.flush,
        "policies": flush_models[pair.flush],
        "flush_models": flush_models,
        "fingerprints": dict(pair.fingerprints),
        "nests": [_nest_json(nest) for nest in pair.nests],
    }


def _policies_json(results: Mapping[str, PolicyResult]) -> dict[str, Any]:
    return {name: _result_json(result) for name, result in results.items()}


def _result_json(result: PolicyResult) -> dict[str, Any]:
    plan = result.plan
    return {
        "time_ns": plan.total_ns,
        "speedup_over_host": result.speedup,
        "placed_on_pim": plan.placed_on_pim,
        "switches": plan.switches,
        "execution_ns": plan.execution_ns,
        "transition_ns": plan.transition_ns,
        "flush_ns": plan.flush_ns,
        "switch_ns": plan.switch_ns,
        "nest_regret": result.nest_regret,
        "plan_regret": result.plan_regret,
    }


def _nest_json(nest: NestResult) -> dict[str, Any]:
    return {
        "nest": nest.name,
        "kind": nest.kind,
        "aten_operators": list(nest.aten_operators),
        "code_hash": nest.code_hash,
        "feature_hash": nest.feature_hash,
        "calls": nest.calls,
        "partitionable": nest.partitionable,
        "refused": nest.refused,
        "host": _timing_json(nest.host),
        "device": _timing_json(nest.device),
        "decisions": {name: {"pim": on_pim, "host": nest.calls - on_pim} for name, on_pim in nest.pim_calls.items()},
    }


def _timing_json(timing: NestTiming) -> dict[str, Any]:
    return {"total_ns": timing.total_ns, "components": dict(timing.components)}
