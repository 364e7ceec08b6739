"""Specifications of hosts and PIM devices. Units stand in the names; every constant has a source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class HostSpec:
    """An out-of-order multicore with a shared, hashed last-level cache."""

    name: str
    cores: int
    clock_ghz: float
    issue_width: int
    simd_lanes_f32: int
    l1_bytes: int
    l1_ways: int
    l1_latency_cycles: float
    l2_bytes: int
    l2_ways: int
    l2_latency_cycles: float
    llc_bytes: int
    """Whole last-level cache, shared by all cores."""
    llc_ways: int
    llc_latency_cycles: float
    dram_latency_ns: float
    dram_bandwidth_gb_s: float
    bandwidth_efficiency: float
    """Share of the peak bandwidth that streams reach."""
    outstanding_misses: int
    """Per core."""
    fork_join_ns: float
    """Cost of starting and joining a parallel range on more than one core."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Field name -> where the value comes from; `assumed` marks an unverified one."""

    @property
    def identity(self) -> str:
        """Name and digest of the values; the host_id of profiles taken on this host."""
        return f"{self.name}@{digest(self)[:12]}"


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """Near-memory cores in the logic layer of a stacked memory (vaults joined by a crossbar)."""

    name: str
    cores: int
    clock_ghz: float
    simd_lanes_f32: int
    outstanding_misses: int
    """Per core; 1 is a blocking core."""
    cycles_int_add: float
    cycles_int_multiply: float
    cycles_int_divide: float
    cycles_float_add: float
    cycles_float_multiply: float
    cycles_float_divide: float
    cycles_transcendental: float
    l1_bytes: int
    l1_ways: int
    l1_latency_cycles: float
    dram_hit_ns: float
    dram_closed_ns: float
    dram_conflict_ns: float
    vaults: int
    vault_bandwidth_gb_s: float
    bandwidth_efficiency: float
    remote_hop_ns: float
    """Added latency of a vault that is not the core's own."""
    refresh_overhead: float
    """tRFC / tREFI, a share of time."""
    launch_ns: float
    """Fixed cost of offloading one nest, each way."""
    switch_ns: float
    """Cost of moving control between host and device, each time the side changes in a plan."""
    flush_host_ns_per_line: float
    """Write-back of one dirty host line before the device may read it."""
    flush_device_ns_per_line: float
    """Write-back of one dirty device line before the host may read it, on one core."""
    capacity_bytes: int
    supported_types: tuple[str, ...]
    """MLIR element types that the cores compute on; other types stay on the host."""
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def offload_ns(self) -> float:
        """Fixed cost of one offloaded nest: its start and its completion, `launch_ns` each."""
        return 2.0 * self.launch_ns

    @property
    def bandwidth_gb_s(self) -> float:
        """Peak over all vaults."""
        return self.vaults * self.vault_bandwidth_gb_s

    @property
    def identity(self) -> str:
        return f"{self.name}@{digest(self)[:12]}"


def digest(spec: HostSpec | DeviceSpec) -> str:
    """sha256 of every value except name and sources."""
    values: dict[str, Any] = {k: v for k, v in asdict(spec).items() if k not in ("name", "sources")}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def assumed_fields(spec: HostSpec | DeviceSpec) -> tuple[str, ...]:
    """Names of the values whose source says `assumed`."""
    return tuple(f.name for f in fields(spec) if spec.sources.get(f.name, "").startswith("assumed"))
