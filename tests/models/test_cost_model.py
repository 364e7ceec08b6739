from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.features.machines import DeviceSpec, HostSpec
from torch_pim.features.profile import HostProfile
from torch_pim.features.specs import load_device, load_host
from torch_pim.models.cost_model.combine import device_total, host_total
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.estimate import ratio_columns, ratio_values
from torch_pim.models.cost_model.model import COST_MODEL_VERSION, CostModel
from torch_pim.models.cost_model.traffic import traffic
from torch_pim.models.errors import UnsupportedFormat
from torch_pim.models.testing import stream_nest

MODEL = CostModel()


def test_a_long_stream_takes_bytes_over_bandwidth_on_both_sides(make_copy, host, device):
    elements = 2**25
    estimate = MODEL.estimate(make_copy(elements), host, device)
    moved = 3 * 4 * elements  # read, fetched for writing, written back
    assert estimate.host.bandwidth_ns == pytest.approx(moved / (40 * 0.8))
    assert estimate.host_ns == pytest.approx(moved / (40 * 0.8), rel=0.05)
    assert estimate.device.bandwidth_ns == pytest.approx(moved / (320 * 0.8) * 1.0205)
    assert estimate.device_ns == pytest.approx(moved / (320 * 0.8), rel=0.1)
    assert estimate.host.bound == "memory bandwidth"
    assert math.exp(estimate.log_time_ratio) == pytest.approx(8.0, rel=0.1)


def test_a_blocking_scalar_core_waits_for_every_line(make_copy, host, device):
    blocking = replace(device, outstanding_misses=1, simd_lanes_f32=1)
    lines_per_core = 2 * 2**22 * 4 / 64 / 64
    latency = 0.75 * 16.8 + 0.25 * (30.4 + 44.0) / 2 + 31 / 32 * 25 + 64 / 10
    times = MODEL.device_times(make_copy(2**22), blocking)
    assert times.latency_ns == pytest.approx(lines_per_core * latency * 1.0205)
    assert times.total_ns > times.latency_ns + times.compute_ns


def test_a_large_product_is_bound_by_multiply_adds_on_the_host(make_matmul, host, device):
    size = 1024
    estimate = MODEL.estimate(make_matmul(size, size, size), host, device)
    # 8 cores x 3 GHz x 2 fused multiply-adds x 8 lanes at 75 % of peak.
    assert estimate.host.compute_ns == pytest.approx(size**3 / (8 * 3 * 16 * 0.75), rel=0.01)
    assert estimate.host.bound == "compute"
    assert estimate.host_ns == pytest.approx(estimate.host.compute_ns, rel=0.1)
    assert estimate.log_time_ratio < 0


def test_blocking_keeps_a_product_from_fetching_its_operands_again_and_again(make_matmul):
    nest = make_matmul(2048, 2048, 2048)
    small, large = traffic(nest, 32 * 1024, 1), traffic(nest, 2**30, 1)
    elements = 3 * 2048**2
    assert large.fetched == pytest.approx(elements * 4 / 64)
    tile = math.sqrt(32 * 1024 / 12)
    assert small.fetched == pytest.approx(2 * 2048**3 * 4 / tile / 64, rel=0.01)


def test_every_core_fetches_its_own_copy_of_what_all_read(make_matmul):
    nest = make_matmul(64, 16, 16)
    one, many = traffic(nest, 32 * 1024, 1), traffic(nest, 32 * 1024, 64)
    assert many.fetched - one.fetched == pytest.approx(63 * 16 * 16 * 4 / 64)


def test_empty_ranges_cost_only_the_overhead(make_copy, host, device):
    estimate = MODEL.estimate(make_copy(0), host, device)
    assert estimate.device_ns == device.offload_ns == 4000.0
    assert estimate.host_ns == 100.0
    assert estimate.device.bound == "launch overhead"


def test_a_serial_nest_has_one_core(make_copy, host, device):
    parallel, serial = make_copy(2**20), make_copy(2**20, partitionable=False)
    assert MODEL.host_times(serial, host).compute_ns == pytest.approx(8 * MODEL.host_times(parallel, host).compute_ns)
    assert MODEL.host_times(serial, host).overhead_ns == 100.0


@given(elements=st.integers(1, 2**26), factor=st.floats(1.1, 8.0))
def test_more_work_never_takes_less_time(elements, factor):
    host, device = load_host("cpu-8c"), load_device("ndp-hmc-64")
    small = MODEL.estimate(stream_nest(elements), host, device)
    large = MODEL.estimate(stream_nest(int(elements * factor) + 1), host, device)
    assert large.host_ns >= small.host_ns * (1 - 1e-9)
    assert large.device_ns >= small.device_ns * (1 - 1e-9)


@pytest.mark.parametrize("field", ["dram_bandwidth_gb_s", "clock_ghz", "outstanding_misses"])
def test_a_better_host_is_not_slower(make_copy, make_matmul, host: HostSpec, field):
    better = replace(host, **{field: getattr(host, field) * 2})
    for nest in (make_copy(2**22), make_copy(500), make_matmul(300, 200, 100)):
        assert MODEL.host_times(nest, better).total_ns <= MODEL.host_times(nest, host).total_ns


@pytest.mark.parametrize(
    "field", ["vault_bandwidth_gb_s", "clock_ghz", "outstanding_misses", "simd_lanes_f32", "cores"]
)
def test_a_better_device_is_not_slower(make_copy, device: DeviceSpec, field):
    better = replace(device, **{field: getattr(device, field) * 2})
    for nest in (make_copy(2**22), make_copy(500)):
        assert MODEL.device_times(nest, better).total_ns <= MODEL.device_times(nest, device).total_ns


def test_capacity_is_soft(make_matmul, host):
    # No step larger than the sizes' own growth where the working set passes a cache.
    times = [MODEL.host_times(make_matmul(64, 64, inner), host).total_ns for inner in range(3000, 5200, 50)]
    steps = [after / before for before, after in itertools.pairwise(times)]
    assert max(steps) < 1.15


def test_components_overlap_between_maximum_and_sum():
    assert host_total(3.0, 0.0, 0.0, 1.0) == pytest.approx(4.0)
    assert host_total(3.0, 3.0, 0.0, 0.0) == pytest.approx(3.0 * 2**0.25)
    assert device_total(3.0, 4.0, 0.0, 1.0, 1.0) == pytest.approx(8.0)
    assert device_total(3.0, 4.0, 0.0, 0.0, 2.0) == pytest.approx(5.0)
    assert device_total(1e200, 1e200, 0.0, 0.0, 8.0) == pytest.approx(1e200 * 2**0.125)
    assert device_total(0.0, 0.0, 0.0, 2000.0, 4.0) == pytest.approx(2000.0)


def profile(host, **changes):
    return replace(HostProfile("code", host.identity, "simulated", wall_time_ns=4e6), **changes)


def test_a_profile_draws_the_host_time_halfway_in_logarithms(make_copy, host, device):
    nest = make_copy(2**22)
    own = MODEL.estimate(nest, host, device)
    seen = MODEL.estimate(nest, host, device, profile(host))
    assert seen.profiled
    assert seen.host_ns == pytest.approx(math.sqrt(4e6 * own.host_ns))
    assert (seen.host, seen.device) == (own.host, own.device)
    assert seen.static_log_time_ratio == own.log_time_ratio
    trusting = CostModel(CostConstants(profile_weight=1.0))
    assert trusting.estimate(nest, host, device, profile(host)).host_ns == pytest.approx(4e6)


def test_profiles_that_say_nothing_about_this_host_are_not_used(make_copy, host, device):
    nest = make_copy(2**16)
    for unusable in (profile(host, host_id="other@1"), profile(host, wall_time_ns=math.nan), profile(host, warm=True)):
        assert MODEL.estimate(nest, host, device, unusable) == MODEL.estimate(nest, host, device)
    assert MODEL.estimate(make_copy(2**24), host, device, profile(host, warm=True)).profiled


def test_ratio_features_are_logarithms_of_times(make_matmul, host, device):
    estimate = MODEL.estimate(make_matmul(256, 256, 256), host, device)
    row = dict(zip((c.name for c in ratio_columns()), ratio_values(estimate), strict=True))
    assert row["log_time_ratio"] == row["static_log_time_ratio"] == math.log(estimate.host_ns / estimate.device_ns)
    assert row["log_device_compute_ratio"] == pytest.approx(
        math.log(estimate.device.compute_ns / estimate.host_ns), abs=1e-3
    )
    assert all(math.isfinite(v) for v in row.values())


def test_constants_scale_their_component(make_copy, host, device):
    nest = make_copy(2**22)
    plain, scaled = MODEL.host_times(nest, host), CostModel(CostConstants(host_bandwidth=2.0)).host_times(nest, host)
    assert scaled.bandwidth_ns == 2 * plain.bandwidth_ns
    assert scaled.latency_ns == plain.latency_ns


def test_constants_survive_json_and_refuse_nonsense():
    constants = CostConstants(host_compute=1.25, device_latency=0.5)
    assert CostConstants.from_json(constants.to_json()) == constants
    with pytest.raises(UnsupportedFormat, match=r"'host_compte'. Did you mean 'host_compute'"):
        CostConstants.from_json({**constants.to_json(), "host_compte": 1.0})
    for field in fields(CostConstants):
        table = constants.to_json()
        del table[field.name]
        with pytest.raises(UnsupportedFormat, match=f"{field.name!r} is missing"):
            CostConstants.from_json(table)
        with pytest.raises(UnsupportedFormat, match=field.name):
            CostConstants.from_json({**constants.to_json(), field.name: -1.0})


GOLDEN_VERSION = 2
GOLDEN = {
    ("copy", "cpu-8c", "ndp-hmc-64"): (412769.549, 55972.0525),
    ("copy", "cpu-1c", "ndp-hmc-32-scalar"): (1054727.71, 354637.305),
    ("matmul", "cpu-8c", "ndp-hmc-64"): (11797.7862, 76101.445),
    ("matmul", "cpu-1c", "ndp-hmc-32-scalar"): (60235.1647, 642550.419),
}


@pytest.mark.parametrize("case", GOLDEN, ids="-".join)
def test_a_change_of_formula_raises_the_version(make_copy, make_matmul, case):
    """Bundles carry trees over these estimates: new formulas under an old version would feed them other numbers."""
    kind, host, device = case
    nest = make_copy(2**20) if kind == "copy" else make_matmul(128, 128, 128)
    estimate = MODEL.estimate(nest, load_host(host), load_device(device))
    found = estimate.host_ns, estimate.device_ns
    assert found == pytest.approx(GOLDEN[case], rel=1e-6), (
        "raise COST_MODEL_VERSION and GOLDEN_VERSION, then renew GOLDEN"
    )
    assert COST_MODEL_VERSION == GOLDEN_VERSION
