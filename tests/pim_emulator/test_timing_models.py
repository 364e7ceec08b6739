"""Times of both sides: closed forms, and each number of a specification moves them the right way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.random_machines import random_machines
from torch_pim.features.specs import device_presets, host_presets, load_device, load_host
from torch_pim.pim_emulator.timing.dram import bank_interference, busiest_vault_ns, queueing_ns, row_latency_ns
from torch_pim.pim_emulator.timing.nest_time import NestTime
from torch_pim.pim_emulator.timing.traffic import CacheSizeWarning
from torch_pim.pim_emulator.timing_model import EMULATOR_VERSION, EmulatorTimingModel

Lowered = Callable[..., tuple[ConcreteNest, ...]]

HOST = load_host("cpu-8c")
DEVICE = load_device("ndp-hmc-64")
NAMES = ("stream", "big_matmul", "big_vector", "big_transpose", "big_softmax", "big_rows", "big_chain", "copy")
BUDGET = 200_000


@pytest.fixture(scope="module")
def model() -> EmulatorTimingModel:
    return EmulatorTimingModel(trace_budget=BUDGET)


def host_time(model: EmulatorTimingModel, nest: ConcreteNest, **changes: float) -> NestTime:
    return model.host_times([nest], replace(HOST, **changes))[0]


def device_time(model: EmulatorTimingModel, nest: ConcreteNest, **changes: float) -> NestTime:
    return model.device_times([nest], replace(DEVICE, **changes))[0]


# --- closed forms ---------------------------------------------------------------------------------------------------


def test_latencies_of_the_hybrid_memory_cube() -> None:
    """Row hit, closed row and conflict of HMC_2500: (nCL + nBL), + nRCD, + nRP cycles of 0.8 ns."""

    def latency(hit: float, interference: float) -> float:
        return float(row_latency_ns(np.array([hit]), np.array([interference]), DEVICE)[0])

    assert latency(1.0, 0.0) == pytest.approx(16.8)
    assert latency(0.0, 0.0) == pytest.approx(30.4)
    assert latency(0.0, 1.0) == pytest.approx(44.0)
    assert latency(0.75, 0.0) == pytest.approx(0.75 * 16.8 + 0.25 * 30.4)
    alone, crowd = bank_interference(np.array([1.0, 1e9]), DEVICE)
    assert (alone, crowd) == (0.0, 1.0)


def test_queue_of_a_vault() -> None:
    """M/D/1 with a service time of 6.4 ns per line: half of it at half utilisation, then more and more, then capped."""
    waits = queueing_ns(np.array([0.0, 0.5, 0.8, 0.95, 5.0]), DEVICE)
    assert waits[:4] == pytest.approx([0.0, 3.2, 12.8, 60.8])
    assert waits[4] == waits[3]


def test_bandwidth_of_the_busiest_vault() -> None:
    lines = np.array([1e6])
    even = busiest_vault_ns(lines, np.array([1.0]), DEVICE)[0]
    assert even == pytest.approx(1e6 * 64 / (320.0 * 0.79))
    assert busiest_vault_ns(lines, np.array([32.0]), DEVICE)[0] == pytest.approx(32 * even)


def test_stream_on_the_host_is_bytes_over_bandwidth(model: EmulatorTimingModel, lowered: Lowered) -> None:
    (nest,) = lowered("stream")
    found = host_time(model, nest)
    lines = 1024 * 1024 * 4 / 64
    # Three arrays come in, one goes out; eight cores.
    assert found.bandwidth_ns == pytest.approx(4 * lines * 64 / (38.4 * 0.8), rel=1e-3)
    assert found.total_ns == pytest.approx(found.bandwidth_ns + HOST.fork_join_ns)
    assert found.dram_latency_ns == pytest.approx(3 * lines * 80 / 10 / 8, rel=0.01)
    assert found.cores_used == 8
    assert found.flush_ns == 0.0


def test_stream_on_the_device_is_bytes_over_bandwidth(model: EmulatorTimingModel, lowered: Lowered) -> None:
    (nest,) = lowered("stream")
    found = device_time(model, nest, outstanding_misses=64)
    lines = 1024 * 1024 * 4 / 64
    assert found.bandwidth_ns == pytest.approx(1.0205 * 4 * lines * 64 / (320 * 0.79), rel=0.02)
    assert found.total_ns == pytest.approx(found.bandwidth_ns + 2 * DEVICE.launch_ns, rel=1e-6)
    assert found.launch_ns == 2 * DEVICE.launch_ns
    assert found.cores_used == 64


def test_matmul_on_the_host_is_multiply_adds_over_the_peak(model: EmulatorTimingModel, lowered: Lowered) -> None:
    (nest,) = lowered("big_matmul")
    found = host_time(model, nest)
    macs = 160 * 192 * 160
    assert found.compute_ns == pytest.approx(macs / (2 * 8 * 0.75) / 3.0 / 8, rel=0.05)


def test_components_make_up_the_totals(model: EmulatorTimingModel, lowered: Lowered) -> None:
    nests = lowered(*NAMES)
    for t in model.host_times(nests, HOST):
        body = max(
            t.compute_ns + t.l1_ns + t.l2_ns, t.l2_ns + t.llc_ns + t.dram_latency_ns, t.bandwidth_ns
        )  # fmt: skip
        assert t.total_ns == pytest.approx(t.launch_ns + t.flush_ns + body)
        assert set(t.components) == {
            "compute_ns", "l1_ns", "l2_ns", "llc_ns", "dram_latency_ns", "bandwidth_ns", "launch_ns", "flush_ns",
        }  # fmt: skip
    for t in model.device_times(nests, DEVICE):
        core = t.compute_ns + t.l1_ns
        overlapped = max(core, t.dram_latency_ns) + min(core, t.dram_latency_ns) / DEVICE.outstanding_misses
        assert t.total_ns == pytest.approx(t.launch_ns + t.flush_ns + max(overlapped, t.bandwidth_ns), rel=1e-6)


def test_small_nests_stay_on_one_host_core(model: EmulatorTimingModel, lowered: Lowered) -> None:
    (nest,) = lowered("copy")
    found = host_time(model, nest)
    assert found.cores_used == 1
    assert found.total_ns < HOST.fork_join_ns


def test_nests_that_are_not_partitionable_use_one_core(model: EmulatorTimingModel, lowered: Lowered) -> None:
    (nest,) = lowered("cumulative")
    assert host_time(model, nest).cores_used == device_time(model, nest).cores_used == 1


def test_half_precision_halves_streams(model: EmulatorTimingModel, lowered: Lowered) -> None:
    half, single = lowered("half", "single")
    assert host_time(model, half).bandwidth_ns == pytest.approx(host_time(model, single).bandwidth_ns / 2, rel=0.01)
    assert device_time(model, half).bandwidth_ns == pytest.approx(device_time(model, single).bandwidth_ns / 2, rel=0.02)


# --- knobs ----------------------------------------------------------------------------------------------------------

HOST_KNOBS = {
    # field: (factor, -1 if times fall, a nest that it moves, further changes that bring it to light)
    "cores": (2, -1, "big_matmul", {}),
    "clock_ghz": (1.5, -1, "big_matmul", {}),
    "issue_width": (2, -1, "big_matmul", {}),
    "simd_lanes_f32": (2, -1, "big_matmul", {}),
    "l1_bytes": (2, -1, "big_matmul", {"l1_bytes": 16384, "l2_latency_cycles": 400, "llc_latency_cycles": 400}),
    "l2_bytes": (4, -1, "big_rows", {"dram_bandwidth_gb_s": 1e4, "dram_latency_ns": 1.0, "llc_latency_cycles": 400}),
    "llc_bytes": (8, -1, "big_rows", {"llc_bytes": 1 << 21}),
    "l2_latency_cycles": (20, 1, "big_matmul", {"llc_latency_cycles": 400}),
    "llc_latency_cycles": (20, 1, "big_matmul", {}),
    "dram_latency_ns": (10, 1, "stream", {}),
    "dram_bandwidth_gb_s": (2, -1, "stream", {}),
    "bandwidth_efficiency": (0.5, 1, "stream", {}),
    "outstanding_misses": (2, -1, "big_chain", {"cores": 1}),
    "fork_join_ns": (2, 1, "big_matmul", {}),
}
DEVICE_KNOBS = {
    "clock_ghz": (2, -1, "big_matmul", {}),
    "simd_lanes_f32": (2, -1, "big_matmul", {}),
    "outstanding_misses": (2, -1, "stream", {"outstanding_misses": 1}),
    "cycles_int_add": (8, 1, "big_chain", {}),
    "cycles_float_add": (2, 1, "big_matmul", {}),
    "cycles_float_multiply": (2, 1, "big_matmul", {}),
    "cycles_float_divide": (4, 1, "big_softmax", {}),
    "cycles_transcendental": (2, 1, "big_chain", {}),
    "l1_bytes": (4, -1, "big_matmul", {"l1_bytes": 16384, "clock_ghz": 100.0, "cores": 1}),
    "l1_latency_cycles": (2, 1, "big_matmul", {}),
    "dram_hit_ns": (0.5, -1, "stream", {"outstanding_misses": 1}),
    "dram_closed_ns": (2, 1, "stream", {"dram_conflict_ns": 100.0, "outstanding_misses": 1}),
    "dram_conflict_ns": (2, 1, "stream", {"outstanding_misses": 1}),
    "vault_bandwidth_gb_s": (0.25, 1, "stream", {}),
    "bandwidth_efficiency": (0.25, 1, "stream", {}),
    "remote_hop_ns": (4, 1, "stream", {"outstanding_misses": 1}),
    "refresh_overhead": (10, 1, "stream", {}),
    "launch_ns": (2, 1, "copy", {}),
}


@pytest.mark.parametrize("knob", HOST_KNOBS)
def test_host_knobs(model: EmulatorTimingModel, lowered: Lowered, knob: str) -> None:
    factor, direction, moved, setting = HOST_KNOBS[knob]
    before = replace(HOST, **setting)
    value = getattr(before, knob) * factor
    check_knob(model, lowered, before, replace(before, **{knob: value}), direction, moved)


@pytest.mark.parametrize("knob", DEVICE_KNOBS)
def test_device_knobs(model: EmulatorTimingModel, lowered: Lowered, knob: str) -> None:
    factor, direction, moved, setting = DEVICE_KNOBS[knob]
    before = replace(DEVICE, **setting)
    value = getattr(before, knob) * factor
    check_knob(model, lowered, before, replace(before, **{knob: value}), direction, moved)


def check_knob(
    model: EmulatorTimingModel,
    lowered: Lowered,
    before: HostSpec | DeviceSpec,
    after: HostSpec | DeviceSpec,
    direction: int,
    moved: str,
) -> None:
    """No nest moves the wrong way by more than rounding (or replication in more caches), and one clearly moves."""
    nests = lowered(*NAMES)
    times = [
        model.host_times(nests, spec) if isinstance(spec, HostSpec) else model.device_times(nests, spec)
        for spec in (before, after)
    ]
    changes = dict(zip(NAMES, (np.log(b.total_ns / a.total_ns) for a, b in zip(*times, strict=True)), strict=True))
    assert all(direction * change > -1e-6 for change in changes.values()), changes
    assert direction * changes[moved] > 0.01, changes


def test_fields_that_times_do_not_depend_on(model: EmulatorTimingModel, lowered: Lowered) -> None:
    (nest,) = lowered("big_matmul")
    host = replace(HOST, l1_ways=4, l2_ways=4, llc_ways=8, l1_latency_cycles=8.0)
    assert model.host_times([nest], host)[0] == host_time(model, nest)
    device = replace(DEVICE, l1_ways=4, switch_ns=9.0, flush_host_ns_per_line=9.0, flush_device_ns_per_line=9.0)
    assert model.device_times([nest], device)[0] == device_time(model, nest)


# --- bounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["ndp-hmc-64", "ndp-hmc-64-scalar"])
def test_more_cores_are_never_slower_until_bandwidth_binds(
    model: EmulatorTimingModel, lowered: Lowered, base: str
) -> None:
    nests = lowered(*NAMES)
    spec = load_device(base)
    previous = model.device_times(nests, replace(spec, cores=1))
    for cores in (2, 4, 8, 16, 32, 64, 128, 256):
        times = model.device_times(nests, replace(spec, cores=cores))
        for name, before, after in zip(NAMES, previous, times, strict=True):
            bound = after.bandwidth_ns > 0.7 * (after.total_ns - after.launch_ns)
            assert after.total_ns <= before.total_ns * (1 + 1e-9) or bound, (name, cores)
        previous = times


@pytest.mark.parametrize("host_name", host_presets())
@pytest.mark.parametrize("device_name", device_presets())
def test_gains_are_bounded_by_the_machines(
    model: EmulatorTimingModel, lowered: Lowered, host_name: str, device_name: str
) -> None:
    """A pure stream gains no more than the ratio of what the memories sustain, a product no more than that of the
    arithmetic peaks."""
    host, device = load_host(host_name), load_device(device_name)
    stream, product = lowered("stream", "big_matmul")
    host_gb_s = host.dram_bandwidth_gb_s * host.bandwidth_efficiency
    # One core cannot keep the channels busy: its outstanding misses bound it as well.
    host_gb_s = min(host_gb_s, host.cores * host.outstanding_misses * 64 / host.dram_latency_ns * 4 / 3)
    ratio = device.bandwidth_gb_s * device.bandwidth_efficiency / host_gb_s
    assert gain(model, stream, host, device) <= ratio * 1.001
    peak = (device.cores * device.clock_ghz * device.simd_lanes_f32) / (host.cores * host.clock_ghz * 8)
    assert gain(model, product, host, device) <= peak * 1.001


def gain(model: EmulatorTimingModel, nest: ConcreteNest, host: HostSpec, device: DeviceSpec) -> float:
    return model.host_times([nest], host)[0].total_ns / model.device_times([nest], device)[0].total_ns


def test_every_random_machine_gives_finite_times(model: EmulatorTimingModel, lowered: Lowered) -> None:
    nests = lowered(*NAMES, "cumulative", "double", "half")
    for host, device in random_machines(seed=3, count=20):
        for time in (*model.host_times(nests, host), *model.device_times(nests, device)):
            assert np.isfinite(time.total_ns)
            assert time.total_ns > 0
            assert min(time.components.values()) >= 0


def test_caches_outside_the_simulated_range_are_named(model: EmulatorTimingModel, lowered: Lowered) -> None:
    (nest,) = lowered("big_rows")
    large = replace(HOST, llc_bytes=256 << 20)
    with pytest.warns(CacheSizeWarning, match=r"host cpu-8c: llc_bytes = 268435456 .* counts as 67108864"):
        found = model.host_times([nest], large)[0]
    assert found == host_time(model, nest, llc_bytes=64 << 20)
    with pytest.warns(CacheSizeWarning, match=r"device ndp-hmc-64: l1_bytes = 8192 .* counts as 16384"):
        assert model.device_times([nest], replace(DEVICE, l1_bytes=8192))


# --- the timing model -----------------------------------------------------------------------------------------------


def test_equal_inputs_equal_times_with_and_without_a_cache(lowered: Lowered, tmp_path: Path) -> None:
    nests = lowered("copy", "big_rows")
    plain = EmulatorTimingModel(BUDGET)
    kept = EmulatorTimingModel(BUDGET, cache_dir=tmp_path)
    assert plain.host_times(nests, HOST) == kept.host_times(nests, HOST)
    assert plain.device_times(nests, DEVICE) == kept.device_times(list(nests), DEVICE)
    assert plain.device_times(nests, DEVICE)[::-1] == plain.device_times(nests[::-1], DEVICE)


def test_empty_and_repeated_nests(model: EmulatorTimingModel, lowered: Lowered) -> None:
    assert model.host_times([], HOST) == model.device_times([], DEVICE) == ()
    (nest,) = lowered("copy")
    first, second = model.host_times([nest, nest], HOST)
    assert first == second


def test_version_and_settings() -> None:
    assert EmulatorTimingModel.version == EMULATOR_VERSION
    with pytest.raises(ValueError, match="trace_budget is 0"):
        EmulatorTimingModel(trace_budget=0)
    with pytest.raises(ValueError, match="seed is -1"):
        EmulatorTimingModel(seed=-1)
