"""How often a loop runs, from the forms of its bounds."""

from __future__ import annotations

from collections.abc import Sequence

from torch_pim.features import extent
from torch_pim.features.extent import Extent
from torch_pim.features.extraction.index_form import IndexForm, subtract

STAND_IN_TRIP = 16
"""Trip count of a loop whose bounds depend on data, or on sizes in no polynomial way; such loops are marked."""


def trip_count(lower: IndexForm, upper: IndexForm, step: IndexForm, trips: Sequence[Extent]) -> tuple[Extent, bool]:
    """(trip count, whether it is only an estimate) of a loop from `lower` up to `upper`.

    Exact for constant bounds and for symbolic ones that the step divides. A bound that moves with outer loops
    (a triangular loop) gives the mean over those loops, rounded up; all else gives STAND_IN_TRIP.
    """
    span = subtract(upper, lower)
    stride = step.known
    if not isinstance(stride, int) or stride <= 0 or not span.exact or not span.affine or span.indirect:
        return STAND_IN_TRIP, True
    if not span.coefficients:
        if isinstance(span.constant, int):
            return max(0, -(-span.constant // stride)), False
        exact = extent.divide_exactly(span.constant, stride)
        return (STAND_IN_TRIP, True) if exact is None else (exact, False)
    return _mean_trip(span, stride, trips), True


def _mean_trip(span: IndexForm, stride: int, trips: Sequence[Extent]) -> int:
    """Mean of span / stride over the loops that the span moves with: linear, so the value at their midpoints."""
    if not isinstance(span.constant, int):
        return STAND_IN_TRIP
    twice = 2 * span.constant
    for loop, coefficient in span.coefficients:
        trip = trips[loop]
        if not isinstance(trip, int) or not isinstance(coefficient, int):
            return STAND_IN_TRIP
        twice += coefficient * max(0, trip - 1)
    return max(0, -(-twice // (2 * stride)))
