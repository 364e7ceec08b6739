"""Gradient-boosted trees with named columns, trained reproducibly on one thread."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.train.settings import TrainingError, TreeSettings
from torch_pim.models.learned.trees import TreeEnsemble

Floats = NDArray[np.float64]

CLASSIFY = "binary:logistic"
REGRESS = "reg:squarederror"


def train_trees(
    features: Floats,
    target: Floats,
    weights: Floats,
    columns: tuple[str, ...],
    settings: TreeSettings,
    objective: str,
    seed: int,
) -> Any:
    """A Booster trained on [rows, columns] features (NaN is missing); raises TrainingError for a one-sided target."""
    import xgboost

    if objective == CLASSIFY and len(np.unique(target)) < 2:
        raise TrainingError("all training rows have the same label: expected nests that win on either side")
    if features.shape[1] != len(columns):
        raise TrainingError(f"{features.shape[1]} feature columns for {len(columns)} names")
    matrix = xgboost.DMatrix(
        features, label=target, weight=weights, feature_names=list(columns), missing=np.nan, nthread=1
    )
    booster = xgboost.train(settings.parameters(objective, seed), matrix, num_boost_round=settings.trees)
    # Saved models carry no scratch attributes; the names are what the bundle checks.
    if booster.feature_names != list(columns):
        raise TrainingError("the trained model lost its column names")
    return booster


def saved(booster: Any) -> bytes:
    """The model file: XGBoost's JSON."""
    return bytes(booster.save_raw("json"))


def margins(booster: Any, features: Floats) -> Floats:
    """Raw scores by the evaluator of the compiler, not by XGBoost: what will be decided with is what is measured."""
    return TreeEnsemble.from_xgboost_json(json.loads(saved(booster))).margins(features).astype(np.float64)


def importance(booster: Any) -> dict[str, float]:
    """Share of the total gain per column, largest first; columns that no tree uses are left out."""
    gains = booster.get_score(importance_type="total_gain")
    total = sum(gains.values())
    return {name: gain / total for name, gain in sorted(gains.items(), key=lambda item: (-item[1], item[0]))}
