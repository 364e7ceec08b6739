"""Latency and queueing of stacked DRAM: open rows, vaults, refresh."""

from __future__ import annotations

import numpy as np

from torch_pim.features.machines import LINE_BYTES, DeviceSpec
from torch_pim.pim_emulator.caches.geometry import VAULT_COUNTS
from torch_pim.pim_emulator.timing.curves import at_size
from torch_pim.pim_emulator.timing.nest_time import Floats

BANKS_PER_VAULT = 16
"""Hybrid Memory Cube specification 2.1 (2014), 8 GB cube."""

FULLEST = 0.95
"""Utilisation at which queueing delay is capped; beyond it the bandwidth term decides."""


def row_latency_ns(hit_share: Floats, interference: Floats, device: DeviceSpec) -> Floats:
    """Mean latency of one line without queueing.

    `hit_share` of the accesses would find their row open if the core were alone; `interference` is the chance that
    another core has used the bank in between. It has then left its own row open (a conflict: precharge, activate,
    read), else the idle bank is closed (activate, read).
    """
    hit = hit_share * (1.0 - interference)
    missed = interference * device.dram_conflict_ns + (1.0 - interference) * device.dram_closed_ns
    return hit * device.dram_hit_ns + (1.0 - hit) * missed


def bank_interference(active_cores: Floats, device: DeviceSpec) -> Floats:
    """Chance that one access of each other core, to banks at random, meets a given bank."""
    banks = device.vaults * BANKS_PER_VAULT
    result: Floats = 1.0 - (1.0 - 1.0 / banks) ** np.maximum(0.0, active_cores - 1.0)
    return result


def busiest_vault_ns(lines: Floats, imbalance: Floats, device: DeviceSpec) -> Floats:
    """Time that the busiest vault needs to move its part of the lines at sustained bandwidth."""
    per_vault = lines * imbalance / device.vaults
    # bytes / (GB/s) = ns
    return per_vault * LINE_BYTES / (device.vault_bandwidth_gb_s * device.bandwidth_efficiency)


def imbalance_at(values: Floats, device: DeviceSpec) -> Floats:
    """Measured imbalance at the device's number of vaults."""
    return at_size(values, VAULT_COUNTS, device.vaults).clip(1.0, float(device.vaults))


def queueing_ns(utilisation: Floats, device: DeviceSpec) -> Floats:
    """Mean wait in a vault that serves lines in constant time: S * rho / (2 * (1 - rho)), an M/D/1 queue."""
    rho = np.minimum(FULLEST, utilisation)
    service = LINE_BYTES / device.vault_bandwidth_gb_s
    result: Floats = service * rho / (2.0 * (1.0 - rho))
    return result
