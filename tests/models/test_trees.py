from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import xgboost

from torch_pim.models.errors import UnsupportedFormat
from torch_pim.models.learned.base_score import base_margin, parse_base_score
from torch_pim.models.learned.trees import TreeEnsemble

NAMES = [f"column_{i}" for i in range(9)]


def data(seed, rows=600):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, len(NAMES))).astype(np.float32)
    x[:, 3] = np.round(x[:, 3])  # ties with split values
    x[rng.random(x.shape) < 0.15] = np.nan
    y = np.nansum(x[:, :4], axis=1) + rng.normal(scale=0.5, size=rows)
    return x, y


def trained(objective, seed, rounds=40, **options):
    x, y = data(seed)
    label = (y > 0.4).astype(float) if objective == "binary:logistic" else y
    matrix = xgboost.DMatrix(x, label, feature_names=NAMES)
    parameters = {"objective": objective, "nthread": 1, "seed": seed, "max_depth": 5, **options}
    return xgboost.train(parameters, matrix, num_boost_round=rounds)


def as_json(booster):
    return json.loads(bytes(booster.save_raw("json")))


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"subsample": 0.6, "colsample_bytree": 0.5, "eta": 0.05},
        {"gamma": 2.0, "max_depth": 8},
        {"tree_method": "exact"},
        {"grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0},
        {"base_score": 0.271828},
        {"num_parallel_tree": 3, "subsample": 0.5},
    ],
    ids=lambda o: "-".join(o) or "plain",
)
def test_margins_are_bit_equal_to_xgboost(objective, options):
    booster = trained(objective, seed=len(options), **options)
    rows, _ = data(99, rows=3000)
    rows[0] = np.nan
    ours = TreeEnsemble.from_xgboost_json(as_json(booster)).margins(rows)
    theirs = booster.predict(xgboost.DMatrix(rows, feature_names=NAMES), output_margin=True)
    assert ours.dtype == np.float32
    assert ours.tobytes() == theirs.tobytes()


def test_the_starting_margin_is_bit_equal_for_many_base_scores():
    x, y = data(0, rows=8)
    matrix = xgboost.DMatrix(x, (y > 0).astype(float))
    for score in np.random.default_rng(5).uniform(0.001, 0.999, 100):
        booster = xgboost.train(
            {"objective": "binary:logistic", "base_score": float(score), "eta": 0.0, "nthread": 1}, matrix, 1
        )
        expected = booster.predict(matrix, output_margin=True)[0]
        text = as_json(booster)["learner"]["learner_model_param"]["base_score"]
        assert base_margin(parse_base_score(text), "binary:logistic") == expected


def test_scikit_learn_wrappers_write_the_same_format():
    x, y = data(3)
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1, random_state=0).fit(x, (y > 0).astype(int))
    ours = TreeEnsemble.from_xgboost_json(as_json(model.get_booster())).margins(x)
    assert ours.tobytes() == model.predict(x, output_margin=True).tobytes()


def test_rows_in_double_precision_round_to_float32_first():
    booster = trained("reg:squarederror", 1)
    rows = np.random.default_rng(2).normal(size=(50, len(NAMES)))
    ensemble = TreeEnsemble.from_xgboost_json(as_json(booster))
    assert ensemble.margins(rows).tobytes() == ensemble.margins(rows.astype(np.float32)).tobytes()
    assert ensemble.features == tuple(NAMES)


@pytest.mark.parametrize("text", ["5.0E-1", "[5.0E-1]", "0.5", 0.5])
def test_base_score_in_old_and_new_form(text):
    assert parse_base_score(text) == np.float32(0.5)


def damaged(change):
    model = copy.deepcopy(as_json(trained("binary:logistic", 4, rounds=3)))
    change(model["learner"])
    return model


def tree(learner):
    return learner["gradient_booster"]["model"]["trees"][1]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m: tree(m)["left_children"].__setitem__(0, 0), "no tree"),
        (lambda m: tree(m)["left_children"].__setitem__(1, 10**6), "no tree"),
        (lambda m: tree(m)["left_children"].__setitem__(0, tree(m)["right_children"][0]), "no tree"),
        (lambda m: tree(m)["left_children"].__setitem__(0, -1), "one child"),
        (lambda m: tree(m)["split_indices"].__setitem__(0, 9), "splits on feature 9 of 9"),
        (lambda m: tree(m)["split_conditions"].__setitem__(0, 1e300), "has the value inf"),
        (lambda m: tree(m)["split_conditions"].__setitem__(0, "x"), "something else than numbers"),
        (lambda m: tree(m)["split_conditions"].pop(), "split_conditions has shape"),
        (lambda m: tree(m)["split_type"].__setitem__(0, 1), "categorical"),
        (lambda m: tree(m).pop("default_left"), "'default_left' is NoneType"),
        (lambda m: m["gradient_booster"]["model"]["trees"].pop(), "num_trees"),
        (lambda m: m["gradient_booster"].update(name="dart"), "booster 'dart'"),
        (lambda m: m["objective"].update(name="multi:softmax"), "objective 'multi:softmax'"),
        (lambda m: m["learner_model_param"].update(num_class="3"), "several outputs"),
        (lambda m: m["learner_model_param"].update(base_score="[0.1,0.2]"), "expected one number"),
        (lambda m: m["learner_model_param"].update(base_score="1.5"), "between 0 and 1"),
        (lambda m: m["learner_model_param"].pop("num_feature"), "num_feature is None"),
        (lambda m: m["feature_names"].pop(), "8 feature names for 9 features"),
        (lambda m: m.pop("gradient_booster"), "'gradient_booster' is NoneType"),
    ],
)
def test_a_damaged_model_is_refused(change, match):
    with pytest.raises(UnsupportedFormat, match=match):
        TreeEnsemble.from_xgboost_json(damaged(change))


def test_wrong_width_is_refused():
    ensemble = TreeEnsemble.from_xgboost_json(as_json(trained("binary:logistic", 4)))
    with pytest.raises(ValueError, match=r"expected \(rows, 9\)"):
        ensemble.margins(np.zeros((2, 8)))
    assert ensemble.margins(np.zeros((0, 9))).shape == (0,)
