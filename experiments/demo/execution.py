"""A small model that really runs: part of its nests on the cores of the emulated device, results against eager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import torch_pim
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.experiments.workloads import get_workload

POLICY = "pim"
"""A model this small is best left on the host, where any sensible policy leaves it; this one offloads what it can."""


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """One forward pass compared with PyTorch eager."""

    model: str
    host: str
    device: str
    policy: str
    calls: int
    calls_on_pim: int
    largest_error: float
    """Largest absolute difference of an output element."""
    largest_output: float
    """Largest absolute value of an eager output element."""


def run_small_model(options: CompileOptions, workload: str = "llama-small", seed: int = 0) -> ExecutionResult:
    """Compiles the model by torch.compile with the backend `torch_pim` and compares its outputs with eager.

    Raises OptionalDependencyError if the workload needs a package that is not installed.
    """
    module, arguments = get_workload(workload).build(seed=seed)
    chosen: dict[str, Any] = {"host": options.host, "device": options.device, "policy": POLICY, "seed": options.seed}
    with torch.no_grad():
        expected = _tensors(module(*arguments))
        actual = _tensors(torch.compile(module, backend="torch_pim", options=chosen)(*arguments))
        # The backend's name leads to no object that could be asked for the plan; this compiles to the same one.
        planned = torch_pim.compile(module, **chosen)
        planned(*arguments)
    plans = planned.plan
    return ExecutionResult(
        model=workload,
        host=plans[0].host,
        device=plans[0].device,
        policy=POLICY,
        calls=sum(plan.calls for plan in plans),
        calls_on_pim=sum(plan.on_pim for plan in plans),
        largest_error=max(_largest(a - e) for a, e in zip(actual, expected, strict=True)),
        largest_output=max(_largest(e) for e in expected),
    )


def _tensors(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _largest(values: torch.Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0
