"""A small model that really runs: part of its nests on the cores of the emulated device, results against eager."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from torch_pim.compiler_hook.backend import compile_dynamo_graph, new_session
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.protocols import Device, RangeKernel
from torch_pim.compiler_hook.report.plan import plan_of
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
    """Runs the model through torch.compile with our backend and compares its outputs with eager.

    Raises OptionalDependencyError if the workload needs a package that is not installed.
    """
    module, arguments = get_workload(workload).build(seed=seed)
    session = new_session(replace(options, policy=POLICY))
    device = _CountingDevice(session.target.device)
    session.target = replace(session.target, device=device)
    with torch.no_grad():
        expected = _tensors(module(*arguments))
        compiled = torch.compile(module, backend=lambda graph, inputs: compile_dynamo_graph(graph, inputs, session))
        actual = _tensors(compiled(*arguments))
    plans = [plan_of(placed) for graph in session.graphs for placed in graph.placed]
    return ExecutionResult(
        model=workload,
        host=session.target.host.name,
        device=device.spec.name,
        policy=POLICY,
        calls=sum(plan.calls for plan in plans),
        calls_on_pim=device.runs,
        largest_error=max(_largest(a - e) for a, e in zip(actual, expected, strict=True)),
        largest_output=max(_largest(e) for e in expected),
    )


class _CountingDevice:
    """A device that counts the nests it runs."""

    def __init__(self, device: Device) -> None:
        self.spec = device.spec
        self.runs = 0
        self._device = device

    def run(self, kernel: RangeKernel, iterations: int) -> tuple[tuple[int, int], ...]:
        self.runs += 1
        return self._device.run(kernel, iterations)

    def supports(self, nest: ConcreteNest) -> str | None:
        return self._device.supports(nest)


def _tensors(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _largest(values: torch.Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0
