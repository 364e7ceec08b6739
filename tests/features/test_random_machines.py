"""Randomised machines: deterministic, within their ranges, and away from what must stay unseen."""

from __future__ import annotations

import pytest

from torch_pim.features.random_machines import (
    DEVICE_MENUS,
    DEVICE_RANGES,
    HOST_MENUS,
    HOST_RANGES,
    NEARNESS,
    random_machines,
)
from torch_pim.features.spec_checks import relation_problems

PAIRS = random_machines(7, 400)


def test_same_seed_same_machines_and_longer_lists_extend_shorter_ones():
    assert random_machines(7, 25) == PAIRS[:25]
    assert random_machines(8, 25) != PAIRS[:25]
    assert random_machines(7, 0) == ()
    assert len({spec.identity for pair in PAIRS for spec in pair}) == 800


def test_values_lie_in_their_ranges_and_go_together():
    for host, device in PAIRS:
        for spec, ranges, menus in ((host, HOST_RANGES, HOST_MENUS), (device, DEVICE_RANGES, DEVICE_MENUS)):
            for field, (low, high) in ranges.items():
                assert low * 0.999 <= getattr(spec, field) <= high * 1.001, field
            for field, menu in menus.items():
                assert getattr(spec, field) in menu
            assert list(relation_problems(spec)) == []


def test_held_out_core_counts_are_never_near():
    for host, device in PAIRS:
        assert not 16 / NEARNESS <= host.cores <= 16 * NEARNESS
        assert not 64 / NEARNESS <= device.cores <= 64 * NEARNESS


def test_exclusions_are_a_parameter():
    machines = random_machines(7, 200, excluded_host_cores=(1, 8), excluded_device_cores=())
    assert not any(host.cores in (1, 7, 8, 9, 10) for host, _ in machines)
    assert any(56 <= device.cores <= 72 for _, device in machines)


def test_draws_cover_both_halves_of_a_logarithmic_range():
    clocks = [device.clock_ghz for _, device in PAIRS]
    below = sum(clock < (0.5 * 2.5) ** 0.5 for clock in clocks)
    assert 150 < below < 250


def test_errors():
    with pytest.raises(ValueError, match="count is -1"):
        random_machines(1, -1)
    with pytest.raises(ValueError, match="leaves no host core count between 1 and 32"):
        random_machines(1, 1, excluded_host_cores=tuple(range(1, 33)))
