"""Cross-validation folds that never split a group of related kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torch_pim.experiments.train.settings import TrainingError

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Row numbers for training and for testing."""


def grouped_folds(labels: NDArray[np.bool_], groups: NDArray[np.str_], count: int, seed: int) -> tuple[Fold, ...]:
    """Folds with about equal shares of both labels; a group is wholly in training or wholly in testing.

    Raises TrainingError for fewer groups than folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    distinct = len(np.unique(groups))
    if distinct < count:
        raise TrainingError(f"{distinct} groups for {count} folds: expected at least one group per fold")
    splitter = StratifiedGroupKFold(n_splits=count, shuffle=True, random_state=seed)
    split = splitter.split(np.zeros((len(labels), 1)), labels.astype(np.int64), groups)
    return tuple((np.asarray(train, np.int64), np.asarray(test, np.int64)) for train, test in split)
