"""Labels in memory: times of every nest on every machine, with what is needed to derive features again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.label.records import encode
from torch_pim.features.machines import DeviceSpec, HostSpec, digest
from torch_pim.features.nest import LoopNest
from torch_pim.features.profile import HostProfile

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelHeader:
    """Where labels come from. Labels of different emulator versions are never mixed."""

    corpus: str
    corpus_content: str
    emulator_version: str
    trace_budget: int
    """Accesses traced per nest at most."""
    seed: int
    profile_noise: float
    """Standard deviation of the logarithm of simulated measurements."""
    held_out: str
    """Which models' nests were kept out."""


@dataclass(frozen=True, slots=True)
class LabelledNest:
    """One unique concrete nest and where it occurs in the corpus."""

    nest: LoopNest
    source: str
    """Name of the first entry that it occurs in."""
    family: str
    group: str

    @property
    def identity(self) -> str:
        """16 hexadecimal digits of code and features."""
        return nest_identity(self.nest)


def nest_identity(nest: LoopNest) -> str:
    """Short name of a nest by its two hashes."""
    return hashlib.sha256(f"{nest.code_hash} {nest.feature_hash}".encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class LabelSet:
    """`host_ns` is [nests, hosts] and `device_ns` [nests, devices]; `profiles` is like `host_ns`."""

    header: LabelHeader
    nests: tuple[LabelledNest, ...]
    hosts: tuple[HostSpec, ...]
    devices: tuple[DeviceSpec, ...]
    pairs: tuple[tuple[int, int], ...]
    """(host, device) indices that rows are made for, ascending."""
    host_ns: Floats
    device_ns: Floats
    profiles: tuple[tuple[HostProfile | None, ...], ...]

    def __post_init__(self) -> None:
        """Raises ValueError for inconsistent sizes, times that are not positive, or nests out of order."""
        expected = (len(self.nests), len(self.hosts)), (len(self.nests), len(self.devices))
        if (self.host_ns.shape, self.device_ns.shape) != expected:
            raise ValueError(f"times of shape {self.host_ns.shape} and {self.device_ns.shape}: expected {expected}")
        if len(self.profiles) != len(self.nests) or any(len(row) != len(self.hosts) for row in self.profiles):
            raise ValueError("profiles: expected one (or None) per nest and host")
        for name, values in (("host", self.host_ns), ("device", self.device_ns)):
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise ValueError(f"{name} times: expected positive finite nanoseconds")
        identities = [nest.identity for nest in self.nests]
        if identities != sorted(set(identities)):
            raise ValueError("nests: expected distinct nests sorted by identity")
        if list(self.pairs) != sorted(set(self.pairs)):
            raise ValueError("pairs: expected distinct pairs in ascending order")

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """(nest, host, device) indices of every row, sorted by pair and then by nest."""
        for host, device in self.pairs:
            for nest in range(len(self.nests)):
                yield nest, host, device

    def label_key(self, nest: int, host: int, device: int) -> str:
        """sha256 of all that a label depends on: code, machines, emulator version, trace budget and seed."""
        parts = [
            self.nests[nest].nest.code_hash,
            self.nests[nest].nest.feature_hash,
            digest(self.hosts[host]),
            digest(self.devices[device]),
            self.header.emulator_version,
            self.header.trace_budget,
            self.header.seed,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def content(self) -> str:
        """sha256 of the logical content: header, nests, machines, times and profiles; not of any file layout."""
        state = hashlib.sha256(json.dumps(asdict(self.header), sort_keys=True).encode())
        for index, labelled in enumerate(self.nests):
            state.update(f"{labelled.identity} {labelled.source} {labelled.family} {labelled.group}\n".encode())
            for profile in self.profiles[index]:
                state.update((encode(profile) if profile is not None else "-").encode())
        machines: list[HostSpec | DeviceSpec] = [*self.hosts, *self.devices]
        for spec in machines:
            state.update(f"{spec.name} {digest(spec)}\n".encode())
        state.update(json.dumps(self.pairs).encode())
        for values in (self.host_ns, self.device_ns):
            state.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        return state.hexdigest()
