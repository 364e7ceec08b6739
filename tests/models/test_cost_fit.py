from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from torch_pim.features.random_machines import random_machines
from torch_pim.models.cost_model.constants import CostConstants
from torch_pim.models.cost_model.fit import DeviceLabel, HostLabel, fit_constants
from torch_pim.models.cost_model.model import CostModel

TRUTH = CostConstants(1.5, 0.7, 1.2, 2.0, 0.6, 1.8, 1.1, 1.4)


@pytest.fixture
def labels(make_copy, make_matmul):
    nests = [make_copy(n) for n in (100, 10_000, 10**6, 10**7)]
    nests += [make_matmul(*s) for s in ((8, 8, 8), (64, 64, 64), (256, 256, 256), (1, 512, 512), (1024, 512, 256))]
    model = CostModel(TRUTH)
    host, device = [], []
    for host_spec, device_spec in random_machines(seed=3, count=8):
        for nest in nests:
            host.append(HostLabel(nest, host_spec, model.host_times(nest, host_spec).total_ns))
            device.append(DeviceLabel(nest, device_spec, model.device_times(nest, device_spec).total_ns))
    return host, device


def values(constants):
    return np.array([*constants.host, *constants.device])


def test_known_constants_are_found_again(labels):
    found = fit_constants(*labels)
    assert np.allclose(np.log(values(found)), np.log(values(TRUTH)), atol=0.05)
    assert found.profile_weight == CostConstants().profile_weight


def test_outliers_do_not_carry_the_fit_away(labels):
    host, device = labels
    spoilt = [replace(x, time_ns=x.time_ns * 50) if i % 12 == 0 else x for i, x in enumerate(host)]
    found = fit_constants(spoilt, device)
    assert np.allclose(np.log(found.host), np.log(TRUTH.host), atol=0.25)


def test_the_fit_is_deterministic_and_prints_short_numbers(labels):
    first, second = fit_constants(*labels), fit_constants(*labels)
    assert first == second
    assert all(len(f"{v:.6g}") <= 12 and float(f"{v:.6g}") == v for v in values(first))


def test_a_component_that_no_label_shows_keeps_its_specification(make_matmul, host, device):
    nest = make_matmul(1024, 1024, 1024)  # compute-bound on both sides
    found = fit_constants([HostLabel(nest, host, 1e9)], [DeviceLabel(nest, device, 1e9)])
    assert found.host_compute > 3
    assert found.host_overhead == pytest.approx(1.0, abs=0.01)
    assert found.host_bandwidth == pytest.approx(1.0, abs=0.05)


def test_bad_labels_are_refused(labels, make_copy, host):
    good_host, good_device = labels
    with pytest.raises(ValueError, match="no device labels"):
        fit_constants(good_host, [])
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="a host label has the time"):
            fit_constants([HostLabel(make_copy(8), host, bad)], good_device)
