"""Simulated host profiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest

from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.features.profile import LOCALITY_BYTES, HostProfile
from torch_pim.features.specs import load_host
from torch_pim.pim_emulator.profiler import MEASURED, SimulatedProfiler
from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

Lowered = Callable[..., tuple[ConcreteNest, ...]]

HOST = load_host("cpu-8c")
NAMES = ("stream", "big_matmul", "big_rows", "softmax")


@pytest.fixture(scope="module")
def model() -> EmulatorTimingModel:
    return EmulatorTimingModel(trace_budget=200_000)


def test_without_noise_it_is_the_model(model: EmulatorTimingModel, lowered: Lowered) -> None:
    nests = lowered(*NAMES)
    profiles = SimulatedProfiler(HOST, noise=0.0, timing=model).profile(nests)
    for nest, time, profile in zip(nests, model.host_times(nests, HOST), profiles, strict=True):
        assert profile.code_hash == nest.function.code_hash
        assert profile.host_id == HOST.identity
        assert profile.origin == "simulated"
        assert not profile.warm
        assert profile.wall_time_ns == time.total_ns
        assert profile.l1_misses >= profile.l2_misses >= profile.llc_misses > 0
        assert profile.dram_bytes >= 64 * profile.llc_misses
        assert profile.instructions >= profile.loads + profile.stores
        assert 0 < profile.ipc <= HOST.issue_width
        assert list(profile.locality_curve) == sorted(profile.locality_curve, reverse=True)
        assert len(profile.locality_curve) == len(LOCALITY_BYTES)


def test_counters_of_a_stream_in_closed_form(model: EmulatorTimingModel, lowered: Lowered) -> None:
    profile = SimulatedProfiler(HOST, noise=0.0, timing=model).profile(lowered("stream"))[0]
    elements = 1024 * 1024
    assert profile.loads == pytest.approx(2 * elements / 8)
    assert profile.stores == pytest.approx(elements / 8)
    assert profile.llc_misses == pytest.approx(3 * elements * 4 / 64, rel=1e-3)
    assert profile.dram_bytes == pytest.approx(4 * elements * 4, rel=1e-3)
    assert profile.locality_curve == pytest.approx((1 / 16,) * len(LOCALITY_BYTES), rel=1e-3)


def test_noise_has_the_size_asked_for(model: EmulatorTimingModel, lowered: Lowered) -> None:
    nests = lowered(*NAMES)
    exact = SimulatedProfiler(HOST, noise=0.0, timing=model).profile(nests)
    factors = [
        math.log(getattr(noisy, name) / getattr(clean, name))
        for seed in range(60)
        for noisy, clean in zip(SimulatedProfiler(HOST, seed, 0.05, model).profile(nests), exact, strict=True)
        for name in MEASURED
    ]
    assert np.mean(factors) == pytest.approx(0.0, abs=0.005)
    assert np.std(factors) == pytest.approx(0.05, rel=0.1)


def test_draws_depend_on_nest_host_and_seed_alone(model: EmulatorTimingModel, lowered: Lowered) -> None:
    nests = lowered(*NAMES)

    def profiles(host_name: str = "cpu-8c", seed: int = 0) -> tuple[HostProfile, ...]:
        return SimulatedProfiler(load_host(host_name), seed, timing=model).profile(nests)

    assert profiles() == profiles()
    assert SimulatedProfiler(HOST, timing=model).profile(nests[::-1]) == profiles()[::-1]
    assert profiles(seed=1) != profiles()
    exact = SimulatedProfiler(load_host("cpu-1c"), noise=0.0, timing=model).profile(nests)
    clean = SimulatedProfiler(HOST, noise=0.0, timing=model).profile(nests)
    assert profiles("cpu-1c")[0].loads / exact[0].loads != profiles()[0].loads / clean[0].loads


def test_every_counter_is_known(model: EmulatorTimingModel, lowered: Lowered) -> None:
    profile = SimulatedProfiler(HOST, timing=model).profile(lowered("softmax"))[0]
    unknown = [f.name for f in fields(profile) if getattr(profile, f.name) != getattr(profile, f.name)]
    assert unknown == ["wall_time_spread"], "one simulated run has no spread"


def test_no_nests_no_profiles_and_bad_noise(model: EmulatorTimingModel) -> None:
    assert SimulatedProfiler(HOST, timing=model).profile([]) == ()
    for noise in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match="noise is"):
            SimulatedProfiler(HOST, noise=noise, timing=model)
