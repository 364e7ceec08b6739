"""Checks that the code which is timed computes what PyTorch computes, before its times become labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.lowered import lower_model
from torch_pim.compiler_hook.protocols import Device
from torch_pim.compiler_hook.runtime.executor import Executor
from torch_pim.compiler_hook.runtime.host_pool import HostPool
from torch_pim.experiments.corpus.corpora import Entry
from torch_pim.experiments.corpus.entry import CorpusEntry
from torch_pim.features.placement import Side

LARGEST_BYTES = 1 << 20
"""Entries with more argument bytes are not executed: naive loops on emulated cores are slow."""
TOLERANCE = {torch.float32: 2e-4, torch.float16: 4e-3, torch.bfloat16: 4e-2}
"""Largest error relative to the largest result; f16 and bf16 differ by how often a sum is rounded."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The larger relative error of host and PIM execution; `passed` compares it with the tolerance of the type."""

    error: float
    passed: bool


def is_small(entry: Entry) -> bool:
    """Whether an entry is executed at all: a single operator on little data."""
    return isinstance(entry, CorpusEntry) and entry.nbytes <= LARGEST_BYTES


def check_entry(entry: Entry, device: Device, seed: int = 0) -> CheckResult:
    """Runs the entry in PyTorch, as host code, and split over the cores of the device, on the same values."""
    module, arguments = entry.build(fake=False, seed=seed)
    with torch.no_grad():
        expected = [t for t in pytree.tree_leaves(module(*(a.clone() for a in arguments))) if torch.is_tensor(t)]
    lowered = lower_model(module, arguments)
    program = lowered.specialised()
    library = KernelLibrary.compile(lowered.program.functions)
    worst = 0.0
    with HostPool(1) as pool:
        for side in ("host", "pim"):
            sides = [_side(side, program.nests[call.nest].loop_nest.partitionable) for call in program.calls]
            found = Executor(program, library, sides, device, pool)([a.clone() for a in arguments])
            tensors = [t for t in found if torch.is_tensor(t)]
            worst = max([worst, *(_relative_error(a, b) for a, b in zip(tensors, expected, strict=True))])
    tolerance = max((TOLERANCE.get(t.dtype, 0.0) for t in expected), default=0.0)
    return CheckResult(worst, worst <= tolerance)


def _side(wanted: str, partitionable: bool) -> Side:
    return "pim" if wanted == "pim" and partitionable else "host"


def _relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if not expected.numel():
        return 0.0
    difference = (found.double() - expected.double()).abs().max()
    error = float(difference / expected.double().abs().max().clamp(min=1e-30))
    return error if error == error else float("inf")
