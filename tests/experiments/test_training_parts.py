"""Boosting, calibration, gates and logistic regression on synthetic data with known answers."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_pim.experiments.train import boosting
from torch_pim.experiments.train.calibration import (
    THRESHOLDS,
    choose_threshold,
    expected_calibration_error,
    fit_calibration,
    probabilities,
    regret_by_threshold,
    reliability,
)
from torch_pim.experiments.train.gates import GATES, choose_gate, log_time_error
from torch_pim.experiments.train.logistic import train_logistic
from torch_pim.experiments.train.settings import TrainingError, TrainingSettings, TreeSettings
from torch_pim.models.learned.classifier import LogisticModel

SMALL = TreeSettings(trees=10, depth=3)


@pytest.fixture
def separable():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 3))
    features[rng.random(400) < 0.1, 2] = np.nan
    return features, features[:, 0] > 0.3


class TestBoosting:
    def test_same_input_same_bytes_and_margins_of_xgboost(self, separable):
        import xgboost

        features, labels = separable
        arguments = (features, labels.astype(float), np.ones(400), ("a", "b", "c"), SMALL, boosting.CLASSIFY, 3)
        first, second = boosting.train_trees(*arguments), boosting.train_trees(*arguments)
        assert boosting.saved(first) == boosting.saved(second)
        matrix = xgboost.DMatrix(features, feature_names=["a", "b", "c"], missing=np.nan)
        expected = first.predict(matrix, output_margin=True)
        assert np.array_equal(boosting.margins(first, features).astype(np.float32), expected)
        assert ((boosting.margins(first, features) > 0) == labels).mean() > 0.97
        shares = boosting.importance(first)
        assert next(iter(shares)) == "a"
        assert sum(shares.values()) == pytest.approx(1.0)

    def test_another_seed_gives_another_model(self, separable):
        features, labels = separable
        common = (features, labels.astype(float), np.ones(400), ("a", "b", "c"), SMALL, boosting.CLASSIFY)
        assert boosting.saved(boosting.train_trees(*common, 0)) != boosting.saved(boosting.train_trees(*common, 1))

    def test_weights_decide_conflicts(self):
        features = np.zeros((100, 1))
        labels = np.arange(100) % 2 == 0
        weights = np.where(labels, 10.0, 1.0)
        booster = boosting.train_trees(features, labels.astype(float), weights, ("a",), SMALL, boosting.CLASSIFY, 0)
        assert (boosting.margins(booster, features) > 0).all()

    def test_regression_keeps_its_objective(self, separable):
        features, _ = separable
        target = 2.0 * features[:, 0]
        booster = boosting.train_trees(features, target, np.ones(400), ("a", "b", "c"), SMALL, boosting.REGRESS, 0)
        assert json.loads(boosting.saved(booster))["learner"]["objective"]["name"] == "reg:squarederror"
        assert np.corrcoef(boosting.margins(booster, features), target)[0, 1] > 0.95

    def test_bad_input(self, separable):
        features, _ = separable
        with pytest.raises(TrainingError, match="same label"):
            boosting.train_trees(features, np.ones(400), np.ones(400), ("a", "b", "c"), SMALL, boosting.CLASSIFY, 0)
        with pytest.raises(TrainingError, match="3 feature columns for 1 names"):
            boosting.train_trees(features, np.arange(400) % 2.0, np.ones(400), ("a",), SMALL, boosting.CLASSIFY, 0)


class TestCalibration:
    def test_recovers_a_known_sigmoid(self):
        rng = np.random.default_rng(1)
        margins = rng.normal(scale=2.0, size=40_000)
        labels = rng.random(40_000) < 1 / (1 + np.exp(-(0.6 * margins - 0.4)))
        found = fit_calibration(margins, labels)
        assert found.slope == pytest.approx(0.6, abs=0.03)
        assert found.intercept == pytest.approx(-0.4, abs=0.03)
        scores = probabilities(found, margins)
        assert expected_calibration_error(scores, labels) < 0.02
        assert expected_calibration_error(np.clip(scores + 0.2, 0, 1), labels) > 0.1

    def test_useless_margins_are_refused(self):
        margins = np.linspace(-1, 1, 50)
        with pytest.raises(TrainingError, match="speak against"):
            fit_calibration(margins, margins < 0)
        with pytest.raises(TrainingError, match="same label"):
            fit_calibration(margins, np.ones(50, np.bool_))

    def test_reliability_counts_every_row_once(self):
        scores = np.array([0.0, 0.05, 0.95, 1.0])
        assert reliability(scores, np.array([False, True, True, True])) == (
            (pytest.approx(0.025), 0.5, 2),
            (pytest.approx(0.975), 1.0, 2),
        )

    def test_threshold_near_half_unless_regret_says_otherwise(self):
        flat = tuple((t, 0.1) for t in THRESHOLDS)
        assert choose_threshold(flat) == 0.5
        tilted = tuple((t, 0.1 + abs(t - 0.7)) for t in THRESHOLDS)
        assert choose_threshold(tilted) == 0.7

    def test_regret_curve(self):
        scores = np.array([0.3, 0.6])
        host, device = np.array([10.0, 10.0]), np.array([20.0, 5.0])
        curve = dict(regret_by_threshold(scores, host, device, np.zeros(2, np.int64)))
        assert curve[0.5] == pytest.approx(0.0)
        assert curve[0.2] == pytest.approx(25 / 15 - 1)
        assert curve[0.8] == pytest.approx(20 / 15 - 1)


class TestGates:
    def test_useless_corrections_are_closed_and_good_ones_open(self):
        rng = np.random.default_rng(2)
        residual = rng.normal(size=2000)
        weights = np.ones(2000)
        assert choose_gate(residual, rng.normal(size=2000), weights) == 0.0
        assert choose_gate(residual, residual, weights) == 1.0
        assert choose_gate(residual, 2.0 * residual, weights) == 0.5

    @given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=30))
    def test_the_chosen_gate_is_never_worse_than_none(self, pairs):
        residual, prediction = (np.array(c) for c in zip(*pairs, strict=True))
        weights = np.ones(len(residual))
        gate = choose_gate(residual, prediction, weights)
        assert gate in GATES
        closed = log_time_error(residual, 0 * prediction, weights)
        assert log_time_error(residual, gate * prediction, weights) <= closed + 1e-12


class TestLogistic:
    def test_finds_the_direction_and_survives_constant_and_missing_columns(self, separable):
        features, labels = separable
        padded = np.column_stack([features, np.full(400, 7.0), np.full(400, np.nan)])
        model = train_logistic(padded, labels, np.ones(400), ("a", "b", "c", "constant", "missing"))
        assert ((model.margins(padded) > 0) == labels).mean() > 0.95
        assert model.coefficients[3] == model.coefficients[4] == 0.0
        assert LogisticModel.from_json(json.loads(model.to_json())) == model


def test_settings_are_checked():
    with pytest.raises(TrainingError, match="folds is 1"):
        TrainingSettings(folds=1)
    with pytest.raises(TrainingError, match="at most 1 together"):
        TrainingSettings(masked_share=0.8, wall_share=0.3)
