"""Pictures of a training: ROC curve, calibration, regret over the threshold, and importance of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torch_pim.experiments.train.boosting import importance
from torch_pim.experiments.train.calibration import probabilities, reliability
from torch_pim.experiments.train.out_of_fold import EVALUATED
from torch_pim.experiments.train.pipeline import Trained

SIZE = (5.0, 4.0)
MOST_IMPORTANT = 20


def save_plots(trained: Trained, folder: Path) -> tuple[Path, ...]:
    """Writes four PNG files of out-of-fold predictions on the machines of the training."""
    makers = {"roc": _roc, "calibration": _calibration, "regret": _regret, "importance": _importance}
    return tuple(_save(folder / f"{name}.png", make, trained) for name, make in makers.items())


def _save(path: Path, make: Any, trained: Trained) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="tight")
    FigureCanvasAgg(figure)
    make(figure.add_subplot(), trained)
    figure.savefig(path, metadata={"Software": None})
    return path


def _wins(trained: Trained) -> Any:
    return (trained.device_ns < trained.host_ns)[trained.training_rows]


def _roc(axes: Any, trained: Trained) -> None:
    from sklearn.metrics import roc_auc_score, roc_curve

    for setting in EVALUATED:
        margins = trained.out_of_fold.margins[setting][trained.training_rows]
        false_rate, true_rate, _ = roc_curve(_wins(trained), margins)
        axes.plot(false_rate, true_rate, label=f"{setting}, area {roc_auc_score(_wins(trained), margins):.3f}")
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":")
    axes.set(xlabel="host nests placed on PIM", ylabel="PIM nests placed on PIM", title="ROC, out of fold")
    axes.legend()


def _calibration(axes: Any, trained: Trained) -> None:
    for setting in EVALUATED:
        scores = probabilities(trained.calibration, trained.out_of_fold.margins[setting][trained.training_rows])
        points = np.array(reliability(scores, _wins(trained)))
        axes.plot(points[:, 0], points[:, 1], marker="o", label=setting)
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":")
    axes.set(xlabel="score", ylabel="share of nests where PIM is faster", title="Calibration, out of fold")
    axes.legend()


def _regret(axes: Any, trained: Trained) -> None:
    thresholds, regrets = np.array(trained.threshold_curve).T
    axes.plot(thresholds, 100 * regrets)
    axes.axvline(trained.threshold, color="grey", linestyle=":")
    axes.set(xlabel="threshold", ylabel="regret in %", title=f"Regret, chosen threshold {trained.threshold:.2f}")


def _importance(axes: Any, trained: Trained) -> None:
    names, shares = zip(*list(importance(trained.models.classifier).items())[:MOST_IMPORTANT], strict=True)
    axes.barh(names[::-1], [100 * share for share in shares[::-1]])
    axes.tick_params(axis="y", labelsize=6)
    axes.set(xlabel="share of gain in %", title="Importance")
