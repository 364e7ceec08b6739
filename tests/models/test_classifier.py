from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from torch_pim.models.errors import UnsupportedFormat
from torch_pim.models.learned.bundle import Bundle
from torch_pim.models.learned.classifier import Calibration, LogisticModel
from torch_pim.models.learned.inputs import MODEL_SCHEMA
from torch_pim.models.testing import make_tiny_bundle


@pytest.fixture
def trained():
    rng = np.random.default_rng(0)
    rows = rng.normal(loc=3.0, scale=[1.0, 10.0, 0.1], size=(300, 3))
    label = rows @ [1.0, -0.2, 5.0] + rng.normal(size=300) > 16
    scaler = StandardScaler().fit(rows)
    model = LogisticRegression().fit(scaler.transform(rows), label)
    ours = LogisticModel(
        ("a", "b", "c"),
        tuple(scaler.mean_),
        tuple(scaler.scale_),
        tuple(model.coef_[0]),
        float(model.intercept_[0]),
    )
    return ours, rows, model.decision_function(scaler.transform(rows))


def test_logistic_margins_are_those_of_scikit_learn(trained):
    ours, rows, expected = trained
    assert np.allclose(ours.margins(rows), expected, rtol=1e-12, atol=1e-12)
    again = LogisticModel.from_json(json.loads(ours.to_json()))
    assert again == ours


def test_a_row_scores_the_same_alone_and_in_company(trained):
    ours, rows, _ = trained
    together = ours.margins(rows)
    alone = np.array([ours.margins(rows[i : i + 1])[0] for i in range(len(rows))])
    assert together.tobytes() == alone.tobytes()


def test_a_missing_value_counts_as_the_mean(trained):
    ours, rows, _ = trained
    missing, mean = rows[:1].copy(), rows[:1].copy()
    missing[0, 1], mean[0, 1] = math.nan, ours.means[1]
    assert ours.margins(missing) == ours.margins(mean)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"means": (0.0,)}, "means must be 3 finite numbers"),
        ({"coefficients": (0.0, math.nan, 0.0)}, "coefficients must be"),
        ({"scales": (1.0, 0.0, 1.0)}, "scales must be above zero"),
        ({"intercept": math.inf}, "intercept finite"),
    ],
)
def test_impossible_logistic_models_are_refused(trained, change, match):
    ours, _, _ = trained
    parts = {name: getattr(ours, name) for name in ("features", "means", "scales", "coefficients", "intercept")}
    with pytest.raises(UnsupportedFormat, match=match):
        LogisticModel(**{**parts, **change})
    with pytest.raises(UnsupportedFormat, match="expected exactly the keys"):
        LogisticModel.from_json({**parts, "bias": 1})
    with pytest.raises(UnsupportedFormat, match="logistic model"):
        LogisticModel.from_json({**parts, "means": ["x", 1, 2]})


def test_calibration_is_a_sigmoid_that_never_overflows():
    calibration = Calibration(2.0, -1.0)
    assert calibration(0.5) == 0.5
    assert calibration(1.0) == pytest.approx(1 / (1 + math.exp(-1)))
    assert (calibration(1e6), calibration(-1e6)) == (1.0, 0.0)


def test_a_logistic_bundle_decides(tmp_path):
    bundle = Bundle.load(make_tiny_bundle(tmp_path / "b", kind="logistic"))
    rows = np.zeros((2, len(MODEL_SCHEMA.columns)))
    rows[:, MODEL_SCHEMA.names.index("static_log_time_ratio")] = (-1.0, 1.0)
    assert bundle.scores(rows.tolist()) == pytest.approx([1 / (1 + math.exp(3)), 1 / (1 + math.exp(-3))])
