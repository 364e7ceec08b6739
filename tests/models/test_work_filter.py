from __future__ import annotations

from dataclasses import replace

import pytest

from torch_pim.models.cost_model.estimate import CostEstimate, SideTimes
from torch_pim.models.work_filter import element_types, forced_reason, work_filter


def estimate(host_ns, device_ns, launch_ns=2000.0):
    return CostEstimate(
        SideTimes(host_ns, host_ns, 0.0, 0.0, 0.0),
        SideTimes(device_ns, device_ns - launch_ns, 0.0, 0.0, launch_ns),
        host_ns,
        profiled=False,
    )


@pytest.mark.parametrize(
    ("host_ns", "device_ns", "verdict"),
    [
        (500.0, 2_100.0, "follows"),
        (3_900.0, 2_100.0, "follows"),
        (500.0, 4_000.0, "follows"),
        (500.0, 4_001.0, "host"),
        (2_000.0, 90_000.0, "host"),
        (2_001.0, 90_000.0, "candidate"),
        (4_001.0, 2_100.0, "candidate"),
        (1e6, 1e5, "candidate"),
    ],
)
def test_only_launch_and_switch_are_thresholds(device, host_ns, device_ns, verdict):
    assert work_filter(estimate(host_ns, device_ns), device).verdict == verdict


def test_reasons_name_both_times(device):
    assert work_filter(estimate(500.0, 2_100.0), device).reason == (
        "too small to pay for a switch (500 ns on host, 2.1 us on PIM)"
    )
    assert work_filter(estimate(1_900.0, 9e6), device).reason == (
        "not enough work to pay for a launch (1.9 us on host, 9 ms on PIM)"
    )


def test_what_the_device_cannot_run_is_forced_to_the_host(make_copy, device):
    assert forced_reason(make_copy(100), device) is None
    assert forced_reason(make_copy(100, partitionable=False), device) == (
        "not partitionable: it has no parallel loop to split over the cores"
    )
    assert forced_reason(make_copy(100, element_type="f64"), device) == (
        "element type f64 is not supported by round-device"
    )
    assert forced_reason(make_copy(2**31), device) == ("over capacity: it touches 16 GiB, round-device holds 8 GiB")


def test_index_arithmetic_needs_no_support(make_matmul, device):
    nest = make_matmul(4, 4, 4)
    from torch_pim.features.nest import Operation

    indexed = replace(nest, operations=(*nest.operations, Operation("address", "i64", 2, 3.0)))
    assert element_types(indexed) == {"f32"}
    assert forced_reason(indexed, replace(device, supported_types=("f32",))) is None
