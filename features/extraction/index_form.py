"""Index values as linear functions of loop counters: constant + sum of coefficient * iteration number.

A loop's iteration number runs from 0 to trip - 1; lower bound and step of the loop are folded into the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_pim.features import extent
from torch_pim.features.extent import Extent


@dataclass(frozen=True, slots=True)
class IndexForm:
    """A value of index (or integer) type. Where `affine` is false the coefficients only estimate how fast it moves."""

    constant: Extent = 0
    coefficients: tuple[tuple[int, Extent], ...] = ()
    """(loop, change per iteration), sorted by loop, none zero."""
    affine: bool = True
    """The part that is not loaded is linear."""
    indirect: bool = False
    """Part of the value was loaded from memory."""
    indirect_loops: frozenset[int] = frozenset()
    """Loops that the loaded part varies with."""
    exact: bool = True
    """False where `constant` is not known, e.g. the minimum of two symbolic sizes."""

    @property
    def known(self) -> Extent | None:
        """The value where it is the same in every iteration and no data; else None."""
        regular = self.exact and self.affine and not self.indirect
        return self.constant if regular and not self.coefficients else None

    @property
    def loops(self) -> frozenset[int]:
        """All loops that the value varies with."""
        return frozenset(loop for loop, _ in self.coefficients) | self.indirect_loops


def counter(loop: int, step: Extent) -> IndexForm:
    """The counter of a loop that starts at zero."""
    return IndexForm(coefficients=((loop, step),))


def loaded(loops: frozenset[int]) -> IndexForm:
    """A value read from memory at an address that the loops move."""
    return IndexForm(indirect=True, indirect_loops=loops, exact=False)


def _marked(
    constant: Extent, terms: dict[int, Extent], *parts: IndexForm, affine: bool = True, exact: bool = True
) -> IndexForm:
    """A form with the given value that inherits what is irregular about its parts."""
    return IndexForm(
        constant,
        tuple(sorted((loop, c) for loop, c in terms.items() if c != 0)),
        affine and all(p.affine for p in parts),
        any(p.indirect for p in parts),
        frozenset().union(*(p.indirect_loops for p in parts)),
        exact and all(p.exact for p in parts),
    )


def add(left: IndexForm, right: IndexForm) -> IndexForm:
    terms = dict(left.coefficients)
    for loop, coefficient in right.coefficients:
        terms[loop] = extent.add(terms.get(loop, 0), coefficient)
    return _marked(extent.add(left.constant, right.constant), terms, left, right)


def scale(form: IndexForm, factor: Extent) -> IndexForm:
    terms = {loop: extent.multiply(c, factor) for loop, c in form.coefficients}
    return _marked(extent.multiply(form.constant, factor), terms, form)


def subtract(left: IndexForm, right: IndexForm) -> IndexForm:
    return add(left, scale(right, -1))


def multiply(left: IndexForm, right: IndexForm) -> IndexForm:
    for form, factor in ((left, right.known), (right, left.known)):
        if factor is not None:
            return scale(form, factor)
    return mixed(left, right)


def mixed(*parts: IndexForm) -> IndexForm:
    """Any other function of the parts: its value is not known, and it moves with every loop that a part moves with."""
    terms: dict[int, Extent] = {}
    for part in parts:
        for loop, coefficient in part.coefficients:
            terms.setdefault(loop, coefficient)
    return _marked(0, terms, *parts, affine=not terms, exact=False)


def choice(first: IndexForm, second: IndexForm) -> IndexForm:
    """One of two values, as of a select: known only where both are the same."""
    return first if first == second else mixed(first, second)


def minimum(left: IndexForm, right: IndexForm) -> IndexForm:
    low, high = left.known, right.known
    return IndexForm(min(low, high)) if isinstance(low, int) and isinstance(high, int) else choice(left, right)


def maximum(left: IndexForm, right: IndexForm) -> IndexForm:
    low, high = left.known, right.known
    return IndexForm(max(low, high)) if isinstance(low, int) and isinstance(high, int) else choice(left, right)


def floor_divide(form: IndexForm, by: IndexForm, trips: Sequence[Extent]) -> IndexForm:
    """Floor of form / by, exact where the part below a constant divisor never carries. Values are not negative.

    Elsewhere a loop moves the quotient by its coefficient over the divisor, at least by one element per iteration.
    """
    divisor = by.known
    if not isinstance(divisor, int) or divisor <= 0:
        return mixed(form, by)
    parts = _split(form, divisor, trips)
    if parts is not None:
        return parts[0]
    terms: dict[int, Extent] = {
        loop: (max(1, abs(c) // divisor) if isinstance(c, int) else 1) for loop, c in form.coefficients
    }
    return _marked(0, terms, form, affine=not terms, exact=False)


def ceil_divide(form: IndexForm, by: IndexForm, trips: Sequence[Extent]) -> IndexForm:
    """The quotient form / by, rounded up."""
    divisor = by.known
    if not isinstance(divisor, int) or divisor <= 0:
        return mixed(form, by)
    return floor_divide(add(form, IndexForm(divisor - 1)), by, trips)


def remainder(form: IndexForm, by: IndexForm, trips: Sequence[Extent]) -> IndexForm:
    """Remainder of form / by, exact where the part below a constant divisor never carries. Values are not negative.

    Elsewhere a loop moves the remainder by its coefficient modulo the divisor, and it wraps around.
    """
    divisor = by.known
    if not isinstance(divisor, int) or divisor <= 0:
        return mixed(form, by)
    parts = _split(form, divisor, trips)
    if parts is not None:
        return parts[1]
    terms: dict[int, Extent] = {loop: (abs(c) % divisor if isinstance(c, int) else c) for loop, c in form.coefficients}
    return _marked(0, terms, form, affine=not terms, exact=False)


def _split(form: IndexForm, divisor: int, trips: Sequence[Extent]) -> tuple[IndexForm, IndexForm] | None:
    """(quotient, rest) with form = divisor * quotient + rest and 0 <= rest < divisor always; None if not provable."""
    regular = form.exact and form.affine and not form.indirect
    if divisor <= 0 or not regular or not isinstance(form.constant, int):
        return None
    high: dict[int, Extent] = {}
    low: dict[int, Extent] = {}
    smallest = largest = form.constant % divisor
    for loop, coefficient in form.coefficients:
        trip = trips[loop]
        if not isinstance(coefficient, int):
            exact = extent.divide_exactly(coefficient, divisor)
            if exact is None:
                return None
            high[loop] = exact
        elif coefficient % divisor == 0:
            high[loop] = coefficient // divisor
        elif not isinstance(trip, int):
            return None
        else:
            low[loop] = coefficient
            reach = coefficient * max(0, trip - 1)
            smallest, largest = smallest + min(0, reach), largest + max(0, reach)
    if smallest < 0 or largest >= divisor:
        return None
    return _marked(form.constant // divisor, high, form), _marked(form.constant % divisor, low, form)
