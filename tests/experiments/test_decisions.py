"""Metrics of decisions against hand-computed values, scikit-learn and their defining properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from torch_pim.experiments.train.decisions import (
    balanced_accuracy,
    decision_metrics,
    decisive,
    nest_regret,
    sample_weights,
)
from torch_pim.experiments.train.folds import grouped_folds

TIMES = st.lists(st.tuples(st.floats(1.0, 1e9), st.floats(1.0, 1e9), st.booleans()), min_size=1, max_size=30)


def _columns(rows):
    host, device, on_pim = (np.array(column) for column in zip(*rows, strict=True))
    return host, device, on_pim


def test_decisive_needs_both_time_and_ratio():
    host = np.array([4_000.0, 5_000.0, 50_000.0, 10_000.0])
    device = np.array([1_000.0, 1_000.0, 49_000.0, 12_400.0])
    assert decisive(host, device).tolist() == [False, True, False, True]


def test_hand_computed_metrics():
    host = np.array([100e3, 10e3, 40e3, 1e3])
    device = np.array([50e3, 20e3, 41e3, 1e9])
    on_pim = np.array([True, True, True, True])
    metrics = decision_metrics(host, device, on_pim, np.array([0, 0, 1, 2]), np.array([False, False, False, True]))
    assert metrics.rows == 3
    assert metrics.decisive_rows == 2
    assert metrics.coverage == pytest.approx(2 / 3)
    assert metrics.decisive_balanced_accuracy == 0.5
    # Unit 0: (50 + 20) / (50 + 10); unit 1: 41 / 40.
    assert metrics.regret == pytest.approx((70 / 60 * 41 / 40) ** 0.5 - 1)
    assert metrics.worst_regret == pytest.approx(70 / 60 - 1)
    assert metrics.worst_slowdown == pytest.approx(41 / 40)
    assert metrics.pim_share == 1.0


@given(TIMES)
def test_perfect_and_host_only_decisions(rows):
    host, device, _ = _columns(rows)
    units, forced = np.zeros(len(host), np.int64), np.zeros(len(host), np.bool_)
    perfect = decision_metrics(host, device, device < host, units, forced)
    assert perfect.regret == pytest.approx(0.0, abs=1e-12)
    assert perfect.worst_slowdown == 1.0
    assert np.isnan(perfect.decisive_balanced_accuracy) or perfect.decisive_balanced_accuracy == 1.0
    assert decision_metrics(host, device, np.zeros_like(units, np.bool_), units, forced).worst_slowdown == 1.0


@given(TIMES)
def test_regret_is_never_negative_and_scale_free(rows):
    host, device, on_pim = _columns(rows)
    regret = nest_regret(host, device, on_pim)
    assert regret >= -1e-12
    assert nest_regret(3 * host, 3 * device, on_pim) == pytest.approx(regret, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40))
def test_balanced_accuracy_equals_scikit_learn(rows):
    truth, decided = (np.array(c) for c in zip(*rows, strict=True))
    ours = balanced_accuracy(truth, decided)
    if truth.all() or not truth.any():
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(balanced_accuracy_score(truth, decided))


def test_weights_follow_the_cost_of_a_wrong_decision():
    host = np.array([1e6, 1e6, 1e6, 2e3])
    device = np.array([5e5, 9.9e5, 1e3, 1e3])
    weights = sample_weights(host, device)
    assert weights[0] > 5 * weights[1]
    assert weights[2] == pytest.approx(2.0 * 1.05)
    assert weights[0] > 4 * weights[3] > 0


def test_nothing_left_when_all_is_forced():
    metrics = decision_metrics(
        np.ones(2), np.ones(2), np.zeros(2, np.bool_), np.zeros(2, np.int64), np.ones(2, np.bool_)
    )
    assert metrics.rows == 0
    assert np.isnan(metrics.regret)
    assert np.isnan(metrics.coverage)


class TestFolds:
    def test_groups_stay_together_and_every_row_is_tested_once(self):
        rng = np.random.default_rng(0)
        groups = rng.choice(list("abcdefgh"), 200)
        labels = rng.random(200) < 0.3
        folds = grouped_folds(labels, groups, 4, seed=1)
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(200))
        for train, test in folds:
            assert not set(groups[train]) & set(groups[test])
            assert len(train) + len(test) == 200
        again = grouped_folds(labels, groups, 4, seed=1)
        assert all(np.array_equal(a[1], b[1]) for a, b in zip(folds, again, strict=True))

    def test_too_few_groups(self):
        with pytest.raises(ValueError, match="2 groups for 3 folds"):
            grouped_folds(np.array([True, False]), np.array(["a", "b"]), 3, seed=0)
