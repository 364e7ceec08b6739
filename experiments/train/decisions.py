"""How good a set of decisions is: balanced accuracy, regret and slowdown over labelled nests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DECISIVE_TIME_NS = 5_000.0
"""Below this, launch and fork-join overheads decide the label."""
DECISIVE_RATIO = 1.23
"""Closer times are a tie within the error of the timing models."""


def decisive(host_ns: Floats, device_ns: Floats) -> Bools:
    """Rows whose label means something: the slower side takes at least 5 us and the sides differ by 1.23x."""
    slower, faster = np.maximum(host_ns, device_ns), np.minimum(host_ns, device_ns)
    return np.asarray((slower >= DECISIVE_TIME_NS) & (slower >= DECISIVE_RATIO * faster))


def balanced_accuracy(truth: Bools, decided: Bools) -> float:
    """Mean of the shares of correct decisions among true and among false rows; NaN unless both occur."""
    if truth.all() or not truth.any():
        return float("nan")
    return float((decided[truth].mean() + (~decided[~truth]).mean()) / 2)


def nest_regret(host_ns: Floats, device_ns: Floats, on_pim: Bools) -> float:
    """Sum of the chosen times over the sum of the better times, minus one."""
    chosen = np.where(on_pim, device_ns, host_ns)
    return float(chosen.sum() / np.minimum(host_ns, device_ns).sum() - 1.0)


@dataclass(frozen=True, slots=True)
class DecisionMetrics:
    """Quality of one decision per row. Rows with a forced side are in none of the figures."""

    rows: int
    decisive_rows: int
    decisive_balanced_accuracy: float
    """NaN if the decisive rows are all of one side."""
    regret: float
    """Geometric mean over units of (chosen time / better time), minus one."""
    worst_regret: float
    """Largest of the units."""
    worst_slowdown: float
    """Largest chosen time over host-only time of a unit; 1 if no unit got slower."""
    pim_share: float

    @property
    def coverage(self) -> float:
        """Share of rows that are decisive."""
        return self.decisive_rows / self.rows if self.rows else float("nan")


def decision_metrics(
    host_ns: Floats, device_ns: Floats, on_pim: Bools, units: NDArray[np.int64], forced: Bools
) -> DecisionMetrics:
    """Metrics of the rows that are not forced; `units` numbers what is judged as one, e.g. family x machines."""
    keep = ~forced
    host_ns, device_ns, on_pim, units = host_ns[keep], device_ns[keep], on_pim[keep], units[keep]
    if not len(host_ns):
        nan = float("nan")
        return DecisionMetrics(0, 0, nan, nan, nan, nan, nan)
    clear = decisive(host_ns, device_ns)
    _, unit = np.unique(units, return_inverse=True)
    chosen = np.bincount(unit, np.where(on_pim, device_ns, host_ns))
    best = np.bincount(unit, np.minimum(host_ns, device_ns))
    host = np.bincount(unit, host_ns)
    ratio = chosen / best
    return DecisionMetrics(
        rows=len(host_ns),
        decisive_rows=int(clear.sum()),
        decisive_balanced_accuracy=balanced_accuracy((device_ns < host_ns)[clear], on_pim[clear]),
        regret=float(np.exp(np.log(ratio).mean()) - 1.0),
        worst_regret=float(ratio.max() - 1.0),
        worst_slowdown=float(max(1.0, (chosen / host).max())),
        pim_share=float(on_pim.mean()),
    )


def sample_weights(host_ns: Floats, device_ns: Floats) -> Floats:
    """How much a wrong decision would cost: grows with |ln(host / device)| (0.05 to 2) and, up to 20 us, with time.

    Ties and nests of a few microseconds keep a small weight, so that none of their regions is empty.
    """
    distance = np.clip(np.abs(np.log(host_ns / device_ns)), 0.05, 2.0)
    size = np.minimum(1.0, np.maximum(host_ns, device_ns) / 20_000.0)
    return np.asarray(distance * (size + 0.05))
