"""Stage 1: is there enough work in a nest to pay for an offload? And what may not leave the host at all?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch_pim.features.extent import concrete
from torch_pim.features.machines import DeviceSpec
from torch_pim.features.nest import LoopNest
from torch_pim.features.placement import PlacementProblem
from torch_pim.models.cost_model.estimate import CostEstimate
from torch_pim.models.errors import PlacementError
from torch_pim.models.wording import nbytes, times

Verdict = Literal["host", "candidate", "follows"]
"""`host`: cannot pay. `candidate`: ask stage 2. `follows`: so small that it takes the side of its neighbours."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The work filter's verdict on one nest, and why."""

    verdict: Verdict
    reason: str


def forced_reasons(problem: PlacementProblem) -> tuple[str | None, ...]:
    """`forced_reason` of each unique nest; raises PlacementError for a nest with symbolic sizes."""
    require_concrete(problem)
    return tuple(forced_reason(nest, problem.device) for nest in problem.nests)


def require_concrete(problem: PlacementProblem) -> None:
    """Raises PlacementError for a nest with symbolic sizes: nothing can be said about its work."""
    for nest in problem.nests:
        if nest.symbols:
            raise PlacementError(
                f"nest {nest.name!r} has the symbolic sizes {', '.join(sorted(nest.symbols))}: bind them with "
                "LoopNest.at before placing"
            )


def forced_reason(nest: LoopNest, device: DeviceSpec) -> str | None:
    """Why the device cannot run the nest, or None: not partitionable, an unsupported element type, or too large."""
    if not nest.partitionable:
        return "not partitionable: it has no parallel loop to split over the cores"
    for element_type in sorted(element_types(nest)):
        if element_type not in device.supported_types:
            return f"element type {element_type} is not supported by {device.name}"
    needed = sum(concrete(buffer.nbytes) for buffer in nest.buffers)
    if needed > device.capacity_bytes:
        return f"over capacity: it touches {nbytes(needed)}, {device.name} holds {nbytes(device.capacity_bytes)}"
    return None


def element_types(nest: LoopNest) -> frozenset[str]:
    """Element types that the cores must load, store or compute on; index arithmetic is not counted."""
    computed = {operation.element_type for operation in nest.operations if operation.kind != "address"}
    return frozenset(computed | {access.element_type for access in nest.accesses}) - {"index"}


def work_filter(estimate: CostEstimate, device: DeviceSpec) -> FilterAnswer:
    """Compares a nest's estimated times with the fixed costs of an offload; no other threshold.

    A nest of which neither side takes longer than a launch and a switch *follows*: sending it to the host would break
    a run of device nests for less than the switches cost. A larger nest whose host time is below the launch cannot
    pay, not even on an infinitely fast device: *host*. All others are *candidates*.
    """
    launch_ns = estimate.device.overhead_ns
    seen = times(estimate.host_ns, estimate.device_ns)
    if max(estimate.host_ns, estimate.device_ns) <= launch_ns + device.switch_ns:
        return FilterAnswer("follows", f"too small to pay for a switch ({seen})")
    if estimate.host_ns <= launch_ns:
        return FilterAnswer("host", f"not enough work to pay for a launch ({seen})")
    return FilterAnswer("candidate", f"enough work to ask ({seen})")
