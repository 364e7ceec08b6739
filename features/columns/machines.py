"""Features of host and device, and of one over the other. Sizes and rates are logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch_pim.features.columns.feature import Feature, feature, log2_1p
from torch_pim.features.columns.machine_facts import MachineFacts

_Value = Callable[[MachineFacts], float]


def _log(name: str, unit: str, description: str, value: _Value) -> Feature[MachineFacts]:
    return feature(name, f"log2({unit})", description, lambda f: math.log2(value(f)))


HOST_FEATURES: tuple[Feature[MachineFacts], ...] = (
    _log("host_log_cores", "count", "Cores of the host.", lambda f: f.host.cores),
    feature("host_clock", "GHz", "Clock of the host.", lambda f: f.host.clock_ghz),
    feature(
        "host_issue_width", "count", "Instructions that a host core issues per cycle.", lambda f: f.host.issue_width
    ),
    _log("host_log_simd_lanes", "count", "SIMD lanes of a host core (f32).", lambda f: f.host.simd_lanes_f32),
    _log("host_log_l1", "bytes", "First-level cache of a host core.", lambda f: f.host.l1_bytes),
    _log("host_log_l2", "bytes", "Second-level cache of a host core.", lambda f: f.host.l2_bytes),
    _log("host_log_llc", "bytes", "Last-level cache of the host.", lambda f: f.host.llc_bytes),
    _log("host_log_dram_latency", "ns", "Latency of the host's memory.", lambda f: f.host.dram_latency_ns),
    _log("host_log_bandwidth", "GB/s", "Sustained bandwidth of the host's memory.", lambda f: f.host_bandwidth),
    _log(
        "host_log_outstanding_misses", "count", "Misses in flight per host core.", lambda f: f.host.outstanding_misses
    ),
    feature("host_log_fork_join", "log2(1+ns)", "Cost of a parallel range.", lambda f: log2_1p(f.host.fork_join_ns)),
)
DEVICE_FEATURES: tuple[Feature[MachineFacts], ...] = (
    _log("device_log_cores", "count", "Cores of the device.", lambda f: f.device.cores),
    feature("device_clock", "GHz", "Clock of the device.", lambda f: f.device.clock_ghz),
    _log("device_log_simd_lanes", "count", "SIMD lanes of a device core (f32).", lambda f: f.device.simd_lanes_f32),
    _log(
        "device_log_outstanding_misses",
        "count",
        "Misses in flight per device core.",
        lambda f: f.device.outstanding_misses,
    ),
    feature("device_cycles_add", "cycles", "Floating-point addition.", lambda f: f.device.cycles_float_add),
    feature(
        "device_cycles_multiply", "cycles", "Floating-point multiplication.", lambda f: f.device.cycles_float_multiply
    ),
    feature("device_cycles_divide", "cycles", "Floating-point division.", lambda f: f.device.cycles_float_divide),
    feature(
        "device_cycles_transcendental",
        "cycles",
        "One exp, log, tanh or such.",
        lambda f: f.device.cycles_transcendental,
    ),
    _log("device_log_l1", "bytes", "Cache of a device core.", lambda f: f.device.l1_bytes),
    _log(
        "device_log_dram_latency", "ns", "Closed-row latency of the device's memory.", lambda f: f.device.dram_closed_ns
    ),
    feature(
        "device_log_remote_hop",
        "log2(1+ns)",
        "Added latency of another vault.",
        lambda f: log2_1p(f.device.remote_hop_ns),
    ),
    _log("device_log_bandwidth", "GB/s", "Sustained bandwidth of all vaults.", lambda f: f.device_bandwidth),
    feature("device_log_launch", "log2(1+ns)", "Cost of an offload, each way.", lambda f: log2_1p(f.device.launch_ns)),
)
RATIO_FEATURES: tuple[Feature[MachineFacts], ...] = (
    _log(
        "log_bandwidth_ratio", "ratio", "Device over host bandwidth.", lambda f: f.device_bandwidth / f.host_bandwidth
    ),
    _log(
        "log_lane_ratio",
        "ratio",
        "Device over host SIMD lanes times cores times clock.",
        lambda f: f.device_lanes / f.host_lanes,
    ),
    _log("log_core_ratio", "ratio", "Device over host cores.", lambda f: f.device.cores / f.host.cores),
    _log(
        "log_miss_rate_ratio",
        "ratio",
        "Device over host misses in flight per latency.",
        lambda f: f.device_miss_rate / f.host_miss_rate,
    ),
    _log(
        "host_log_balance",
        "ops/byte",
        "Host operations per byte of its bandwidth.",
        lambda f: f.host_lanes / f.host_bandwidth,
    ),
    _log(
        "device_log_balance",
        "ops/byte",
        "Device operations per byte of its bandwidth.",
        lambda f: f.device_lanes / f.device_bandwidth,
    ),
)
