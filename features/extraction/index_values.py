"""From an SSA value to its linear form in the loop counters, or to its view of a buffer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from torch_mlir import ir

from torch_pim.features.extent import Extent
from torch_pim.features.extraction import index_form
from torch_pim.features.extraction.affine_maps import apply_map
from torch_pim.features.extraction.index_form import IndexForm
from torch_pim.features.extraction.views import View, derived_view

UNKNOWN = IndexForm(exact=False)
"""A value that no loop changes and that is no known number, e.g. a floating-point constant."""

Trips = Sequence[Extent]
_Forms = Sequence[IndexForm]
_Rule = Callable[[_Forms, Trips], IndexForm]


def _simple(function: Callable[[IndexForm, IndexForm], IndexForm]) -> _Rule:
    return lambda parts, _: function(parts[0], parts[1])


def _division(function: Callable[[IndexForm, IndexForm, Trips], IndexForm]) -> _Rule:
    return lambda parts, trips: function(parts[0], parts[1], trips)


def _power_of_two(amount: Extent | None) -> IndexForm | None:
    """What a shift by a known amount multiplies or divides by."""
    return IndexForm(1 << amount) if isinstance(amount, int) and 0 <= amount < 63 else None


def _shift_left(parts: _Forms, _: Trips) -> IndexForm:
    factor = _power_of_two(parts[1].known)
    return index_form.mixed(*parts) if factor is None else index_form.multiply(parts[0], factor)


def _shift_right(parts: _Forms, trips: Trips) -> IndexForm:
    divisor = _power_of_two(parts[1].known)
    return index_form.mixed(*parts) if divisor is None else index_form.floor_divide(parts[0], divisor, trips)


_GROUPS: tuple[tuple[str, _Rule], ...] = (
    ("addi", _simple(index_form.add)),
    ("subi", _simple(index_form.subtract)),
    ("muli", _simple(index_form.multiply)),
    ("minsi minui", _simple(index_form.minimum)),
    ("maxsi maxui", _simple(index_form.maximum)),
    ("divsi divui floordivsi", _division(index_form.floor_divide)),
    ("ceildivsi ceildivui", _division(index_form.ceil_divide)),
    ("remsi remui", _division(index_form.remainder)),
    ("index_cast index_castui extsi extui trunci", lambda parts, _: parts[0]),
    ("shli", _shift_left),
    ("shrsi shrui", _shift_right),
)
_RULES: Mapping[str, _Rule] = {f"arith.{name}": rule for names, rule in _GROUPS for name in names.split()}
"""Widths are taken to hold every value, and divided values not to be negative."""


class IndexValues:
    """Forms and views of SSA values, found on demand and kept. Whoever walks the loops sets what loops define."""

    def __init__(self, trips: Trips) -> None:
        self._trips = trips
        self._forms: dict[ir.Value, IndexForm] = {}
        self._views: dict[ir.Value, View] = {}

    def set_form(self, value: ir.Value, form: IndexForm) -> None:
        self._forms[value] = form

    def set_view(self, value: ir.Value, view: View) -> None:
        self._views[value] = view

    def view(self, value: ir.Value) -> View:
        """View behind a memref value; raises ExtractionError when an unknown operation makes it."""
        found = self._views.get(value)
        if found is None:
            op = value.owner.operation
            found = derived_view(op, self.view(op.operands[0]), self.form)
            self._views[value] = found
        return found

    def form(self, value: ir.Value) -> IndexForm:
        """Linear form of an integer value; anything else that depends on it, or on loads, keeps that dependence."""
        found = self._forms.get(value)
        if found is None:
            found = self._form_of_result(value)
            self._forms[value] = found
        return found

    def _form_of_result(self, value: ir.Value) -> IndexForm:
        if isinstance(value.owner, ir.Block):
            return UNKNOWN
        op = value.owner.operation
        if op.name == "arith.constant":
            number = op.attributes["value"]
            return IndexForm(number.value) if isinstance(number, ir.IntegerAttr) else UNKNOWN
        if op.name == "memref.dim":
            axis = self.form(op.operands[1]).known
            return self.view(op.operands[0]).sizes[axis] if isinstance(axis, int) else UNKNOWN
        parts = [self.form(operand) for operand in op.operands if not isinstance(operand.type, ir.MemRefType)]
        if op.name in ("affine.apply", "affine.min", "affine.max"):
            results = apply_map(ir.AffineMapAttr(op.attributes["map"]).value, parts, self._trips)
            return reduce(index_form.maximum if op.name == "affine.max" else index_form.minimum, results)
        if op.name == "arith.select":
            same = parts[1] == parts[2]
            return parts[1] if same else index_form.mixed(*parts)
        rule = _RULES.get(op.name)
        return rule(parts, self._trips) if rule is not None else index_form.mixed(*parts)
