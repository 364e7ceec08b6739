"""Checks of one tree of an XGBoost model file, so that a damaged file is refused and never walked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from torch_pim.models.errors import UnsupportedFormat

_T = TypeVar("_T")


def refuse(problem: str) -> UnsupportedFormat:
    """The error for a model file that cannot be evaluated."""
    return UnsupportedFormat(f"XGBoost model: {problem}; write the model again with torch-pim train")


def entry(table: Mapping[str, Any], key: str, kind: type[_T]) -> _T:
    """The value of a key in its expected JSON type; raises UnsupportedFormat."""
    value = table.get(key) if isinstance(table, Mapping) else None
    if not isinstance(value, kind):
        raise refuse(f"{key!r} is {type(value).__name__}: expected {kind.__name__}")
    return value


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree, nodes as stored; `left` and `right` are -1 at leaves, whose `value` is the leaf's."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    split: NDArray[np.int32]
    value: NDArray[np.float32]
    default_left: NDArray[np.bool_]
    depth: int


def checked_tree(table: Any, index: int, width: int) -> Tree:
    """Arrays of one tree. Raises UnsupportedFormat for wrong lengths, loops, bad indices, categories, vector leaves."""
    where = f"tree {index}"
    parameters = entry(table, "tree_param", dict)
    try:
        count = int(parameters["num_nodes"])
        vector = int(parameters.get("size_leaf_vector", 1))
    except (KeyError, TypeError, ValueError) as error:
        raise refuse(f"{where}: tree_param is not readable") from error
    if vector > 1:
        raise refuse(f"{where} has vector leaves: expected numbers")
    if table.get("categories") or any(table.get("split_type") or ()):
        raise refuse(f"{where} has categorical splits: expected numerical ones")

    def array(name: str, dtype: Any) -> Any:
        stored = entry(table, name, list)
        try:
            with np.errstate(over="ignore"):
                found = np.array(stored, dtype=np.float64).astype(dtype)
        except (TypeError, ValueError) as error:
            raise refuse(f"{where}: {name} holds something else than numbers") from error
        if found.shape != (count,) or count == 0:
            raise refuse(f"{where}: {name} has shape {found.shape} for {count} nodes")
        return found

    left, right = array("left_children", np.int32), array("right_children", np.int32)
    split, value = array("split_indices", np.int64), array("split_conditions", np.float32)
    default_left = array("default_left", np.bool_)
    depth = 0
    seen = np.zeros(count, dtype=np.bool_)
    seen[0] = True
    level = [0]
    while True:
        children = [int(child) for node in level for child in (left[node], right[node]) if left[node] != -1]
        _check_level(where, level, left, right, split, value, width)
        if not children:
            break
        if min(children) < 0 or max(children) >= count or seen[children].any() or len(set(children)) < len(children):
            raise refuse(f"{where} is no tree: a child is out of range or has two parents")
        seen[children] = True
        level = children
        depth += 1
    # Nodes that pruning cut off stay in the file, with any content.
    return Tree(left, right, np.where(seen, split, 0).astype(np.int32), value, default_left, depth)


def _check_level(where: str, level: list[int], left: Any, right: Any, split: Any, value: Any, width: int) -> None:
    for node in level:
        if (left[node] == -1) != (right[node] == -1):
            raise refuse(f"{where}: node {node} has one child: expected two or none")
        if left[node] != -1 and not 0 <= split[node] < width:
            raise refuse(f"{where}: node {node} splits on feature {split[node]} of {width}")
        if not np.isfinite(value[node]):
            raise refuse(f"{where}: node {node} has the value {value[node]}")
