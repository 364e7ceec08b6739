"""Everything that a training run depends on beside its labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.models.learned.manifest import SEMVER


class TrainingError(TorchPimError, ValueError):
    """Labels or settings from which no model can be trained."""


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """Hyper-parameters of gradient boosting (Chen and Guestrin, 2016); one thread: equal inputs, equal bytes."""

    trees: int = 200
    depth: int = 6
    learning_rate: float = 0.08
    row_share: float = 0.8
    """Share of rows drawn per tree."""
    column_share: float = 0.8
    """Share of columns drawn per tree."""

    def parameters(self, objective: str, seed: int) -> dict[str, str | int | float]:
        """Parameters of `xgboost.train`."""
        return {
            "objective": objective,
            "max_depth": self.depth,
            "eta": self.learning_rate,
            "subsample": self.row_share,
            "colsample_bytree": self.column_share,
            "tree_method": "hist",
            "nthread": 1,
            "seed": seed,
        }


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of one run; the defaults train the model that ships."""

    seed: int = 0
    folds: int = 5
    classifier: TreeSettings = TreeSettings()
    residual: TreeSettings = TreeSettings(depth=5)
    masked_share: float = 0.5
    """Share of rows that are trained without a profile."""
    wall_share: float = 0.2
    """Share of rows that are trained with the wall time of a profile but without its counters."""
    unseen_device_cores: tuple[int, ...] = (64,)
    """Devices with these core counts are kept out of training, to be evaluated as unseen machines."""
    unseen_host_cores: tuple[int, ...] = (16,)
    name: str = "placement"
    version: str = "1.0.0"

    def __post_init__(self) -> None:
        """Raises TrainingError for values without meaning."""
        if not SEMVER.fullmatch(self.version):
            raise TrainingError(f"version is {self.version!r}: expected three numbers as in '1.0.0'")
        if self.folds < 2:
            raise TrainingError(f"folds is {self.folds}: expected at least 2")
        if not (0 <= self.masked_share and 0 <= self.wall_share and self.masked_share + self.wall_share <= 1):
            raise TrainingError(
                f"masked_share {self.masked_share} and wall_share {self.wall_share}: expected at most 1 together"
            )
