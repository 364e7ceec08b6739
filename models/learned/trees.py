"""Gradient-boosted trees from XGBoost's JSON, evaluated with numpy to the very bits of XGBoost's margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torch_pim.models.learned.base_score import base_margin, parse_base_score
from torch_pim.models.learned.tree_checks import checked_tree, entry, refuse

OBJECTIVES = ("binary:logistic", "reg:squarederror")
ROWS_AT_ONCE = 2048
"""Bounds the rows x trees matrix of node positions."""

Floats = NDArray[np.float32]
Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """All trees laid end to end. A leaf is its own child, so that every row may take `depth` steps."""

    objective: str
    features: tuple[str, ...]
    """Column names as the booster was trained with; empty if it was trained without names."""
    width: int
    """How many columns a row has."""
    base: np.float32
    """Margin before any tree."""
    roots: Indices
    depth: int
    split: Indices
    threshold: Floats
    left: Indices
    right: Indices
    default_left: NDArray[np.bool_]
    leaf: Floats

    @classmethod
    def from_xgboost_json(cls, model: Mapping[str, Any]) -> TreeEnsemble:
        """Reads what `Booster.save_model("x.json")` writes, for one-output gbtree models without categories.

        Raises UnsupportedFormat for another booster or objective, and for trees that are inconsistent.
        """
        learner = entry(model, "learner", dict)
        booster = entry(learner, "gradient_booster", dict)
        if booster.get("name") != "gbtree":
            raise refuse(f"booster {booster.get('name')!r}: expected 'gbtree'; train with booster='gbtree'")
        objective = entry(learner, "objective", dict).get("name")
        if objective not in OBJECTIVES:
            raise refuse(f"objective {objective!r}: expected one of {', '.join(OBJECTIVES)}")
        parameters = entry(learner, "learner_model_param", dict)
        width = _integer(parameters, "num_feature")
        if _integer(parameters, "num_class") > 1 or _integer(parameters, "num_target") != 1:
            raise refuse("the model has several outputs: expected one")
        features = tuple(entry(learner, "feature_names", list))
        if features and len(features) != width:
            raise refuse(f"{len(features)} feature names for {width} features")
        content = entry(booster, "model", dict)
        trees = entry(content, "trees", list)
        if len(trees) != _integer(entry(content, "gbtree_model_param", dict), "num_trees"):
            raise refuse(f"it holds {len(trees)} trees, which is not what its num_trees says")
        if any(group != 0 for group in entry(content, "tree_info", list)):
            raise refuse("trees belong to several outputs: expected one")
        base = base_margin(parse_base_score(parameters.get("base_score")), objective)
        return cls._assemble(objective, features, width, base, [checked_tree(t, i, width) for i, t in enumerate(trees)])

    @classmethod
    def _assemble(
        cls, objective: str, features: tuple[str, ...], width: int, base: np.float32, trees: Sequence[Any]
    ) -> TreeEnsemble:
        sizes = [tree.left.size for tree in trees]
        roots = np.cumsum([0, *sizes], dtype=np.int32)[:-1]
        nodes = np.arange(sum(sizes), dtype=np.int32)

        def joined(name: str, dtype: Any) -> Any:
            return np.concatenate([getattr(tree, name) for tree in trees]) if trees else np.empty(0, dtype)

        offset = np.repeat(roots, sizes)
        is_leaf = joined("left", np.int32) < 0
        value = joined("value", np.float32)
        return cls(
            objective=objective,
            features=features,
            width=width,
            base=base,
            roots=roots,
            depth=max((tree.depth for tree in trees), default=0),
            split=np.where(is_leaf, 0, joined("split", np.int32)).astype(np.int32),
            threshold=value,
            left=np.where(is_leaf, nodes, joined("left", np.int32) + offset).astype(np.int32),
            right=np.where(is_leaf, nodes, joined("right", np.int32) + offset).astype(np.int32),
            default_left=joined("default_left", np.bool_),
            leaf=value,
        )

    def margins(self, rows: ArrayLike) -> Floats:
        """Raw scores, shape (rows,), of a (rows, width) matrix; NaN is a missing value.

        Starts from the base margin and adds leaves in tree order in float32, as XGBoost does. Raises ValueError for
        another shape.
        """
        values = np.asarray(rows, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != self.width:
            raise ValueError(f"rows of shape {values.shape}: expected (rows, {self.width})")
        parts = [self._margins(values[i : i + ROWS_AT_ONCE]) for i in range(0, len(values), ROWS_AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def _margins(self, values: Floats) -> Floats:
        row = np.arange(len(values))[:, None]
        node = np.broadcast_to(self.roots, (len(values), len(self.roots)))
        for _ in range(self.depth):
            value = values[row, self.split[node]]
            goes_left = np.where(np.isnan(value), self.default_left[node], value < self.threshold[node])
            node = np.where(goes_left, self.left[node], self.right[node])
        terms = np.empty((len(values), len(self.roots) + 1), np.float32)
        terms[:, 0] = self.base
        terms[:, 1:] = self.leaf[node]
        # accumulate, unlike sum, adds strictly from left to right
        return np.asarray(np.add.accumulate(terms, axis=1)[:, -1], dtype=np.float32)


def _integer(table: Mapping[str, Any], key: str) -> int:
    try:
        return int(table[key])
    except (KeyError, TypeError, ValueError) as error:
        raise refuse(f"{key} is {table.get(key)!r}: expected an integer") from error
