"""The machines that labels are made for: presets in all combinations, and randomised pairs."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.random_machines import random_machines
from torch_pim.features.specs import device_presets, host_presets, load_device, load_host


@dataclass(frozen=True, slots=True)
class LabelMachines:
    """Distinct machines, and the pairs of indices that rows are made for, ascending."""

    hosts: tuple[HostSpec, ...]
    devices: tuple[DeviceSpec, ...]
    pairs: tuple[tuple[int, int], ...]


def label_machines(
    hosts: tuple[str, ...] | None = None, devices: tuple[str, ...] | None = None, random_pairs: int = 36, seed: int = 0
) -> LabelMachines:
    """All pairs of the given hosts and devices (names or TOML paths, default every preset), then randomised pairs.

    Randomised machines stay clear of the core counts that are evaluated as unseen (16-core hosts, 64-core devices).
    Raises SpecError for an unknown name.
    """
    host_specs = [load_host(name) for name in (hosts if hosts is not None else host_presets())]
    device_specs = [load_device(name) for name in (devices if devices is not None else device_presets())]
    pairs = [(h, d) for h in range(len(host_specs)) for d in range(len(device_specs))]
    for host, device in random_machines(seed, random_pairs):
        pairs.append((len(host_specs), len(device_specs)))
        host_specs.append(host)
        device_specs.append(device)
    return LabelMachines(tuple(host_specs), tuple(device_specs), tuple(sorted(pairs)))
