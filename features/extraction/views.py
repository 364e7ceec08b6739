"""Memref values as views of a buffer: subviews, reshapes and casts are followed back to parameter or allocation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from torch_mlir import ir

from torch_pim.features import extent
from torch_pim.features.extent import Extent
from torch_pim.features.extraction.errors import ExtractionError
from torch_pim.features.extraction.index_form import IndexForm, add, multiply, scale
from torch_pim.features.extraction.memref_layout import DYNAMIC

VIEW_OPERATIONS = frozenset({
    "memref.cast", "memref.memory_space_cast", "memref.assume_alignment", "memref.subview", "memref.reinterpret_cast",
    "memref.expand_shape", "memref.collapse_shape", "memref.transpose",
})  # fmt: skip
"""Operations that make a new view of a buffer and cost nothing."""

FormOf = Callable[[ir.Value], IndexForm]


@dataclass(frozen=True, slots=True)
class View:
    """A window on a buffer; strides and offset are in elements of the buffer."""

    buffer: int
    element_type: str
    sizes: tuple[IndexForm, ...]
    """Elements along each axis; a size may depend on data or on a loop around the view."""
    strides: tuple[Extent, ...]
    offset: IndexForm

    def position(self, indices: Sequence[IndexForm]) -> IndexForm:
        """Element of the buffer that the indices address."""
        place = self.offset
        for index, stride in zip(indices, self.strides, strict=True):
            place = add(place, scale(index, stride))
        return place


def derived_view(op: ir.Operation, source: View, form_of: FormOf) -> View:
    """View that a view operation makes of `source`; raises ExtractionError for one that is not known."""
    name = op.name
    if name in ("memref.cast", "memref.memory_space_cast", "memref.assume_alignment"):
        return source
    if name == "memref.subview":
        return _subview(op, source, form_of)
    if name == "memref.reinterpret_cast":
        offsets, sizes, strides = _mixed_operands(op, form_of)
        return replace(source, sizes=sizes, strides=_strides(op, strides), offset=offsets[0])
    if name == "memref.expand_shape":
        return _expand(op, source, form_of)
    if name == "memref.collapse_shape":
        return _collapse(op, source)
    if name == "memref.transpose":
        order = [
            expression.position for expression in map(ir.AffineDimExpr, op.attributes["permutation"].value.results)
        ]
        return replace(
            source,
            sizes=tuple(source.sizes[axis] for axis in order),
            strides=tuple(source.strides[axis] for axis in order),
        )
    raise ExtractionError(
        f"unknown memref view {name}; expected subview, cast, reinterpret_cast, expand_shape, collapse_shape or "
        "transpose: lower it to one of them before outlining"
    )


def _subview(op: ir.Operation, source: View, form_of: FormOf) -> View:
    offsets, sizes, steps = _mixed_operands(op, form_of)
    offset = source.position(offsets)
    kept = _kept_axes(op)
    strides = [extent.multiply(stride, step) for stride, step in zip(source.strides, _strides(op, steps), strict=True)]
    return replace(source, offset=offset, sizes=tuple(sizes[a] for a in kept), strides=tuple(strides[a] for a in kept))


def _kept_axes(op: ir.Operation) -> list[int]:
    """Axes that a rank-reducing subview keeps: dropped ones have size 1, so any choice among those is right."""
    static = list(op.attributes["static_sizes"])
    result = list(op.results[0].type.shape)
    kept: list[int] = []
    for axis, size in enumerate(static):
        surplus = len(static) - axis > len(result) - len(kept)
        if len(kept) < len(result) and (not surplus or size != 1 or result[len(kept)] == 1):
            kept.append(axis)
    return kept


def _expand(op: ir.Operation, source: View, form_of: FormOf) -> View:
    dynamic = iter(list(op.operands)[1:])
    sizes = tuple(_form(number, dynamic, form_of) for number in op.attributes["static_output_shape"])
    strides: list[Extent] = [1] * len(sizes)
    for axis, group in enumerate(_groups(op)):
        step = source.strides[axis]
        for target in reversed(group):
            strides[target] = step
            if target != group[0]:
                step = extent.multiply(step, _stride(op, sizes[target]))
    return replace(source, sizes=sizes, strides=tuple(strides))


def _collapse(op: ir.Operation, source: View) -> View:
    sizes: list[IndexForm] = []
    strides: list[Extent] = []
    for group in _groups(op):
        sizes.append(reduce(multiply, (source.sizes[a] for a in group)))
        longer = [a for a in group if source.sizes[a].known != 1] or group
        strides.append(source.strides[longer[-1]])
    return replace(source, sizes=tuple(sizes), strides=tuple(strides))


def _groups(op: ir.Operation) -> list[list[int]]:
    return [[int(axis.value) for axis in group] for group in op.attributes["reassociation"]]


def _mixed_operands(
    op: ir.Operation, form_of: FormOf
) -> tuple[tuple[IndexForm, ...], tuple[IndexForm, ...], tuple[IndexForm, ...]]:
    """(offsets, sizes, strides) of an operation that takes each either as attribute or as operand."""
    operands = iter(list(op.operands)[1:])
    groups = [
        tuple(_form(number, operands, form_of) for number in op.attributes[name])
        for name in ("static_offsets", "static_sizes", "static_strides")
    ]
    return groups[0], groups[1], groups[2]


def _form(number: int, operands: Iterator[ir.Value], form_of: FormOf) -> IndexForm:
    return form_of(next(operands)) if number == DYNAMIC else IndexForm(int(number))


def _strides(op: ir.Operation, forms: Sequence[IndexForm]) -> tuple[Extent, ...]:
    return tuple(_stride(op, form) for form in forms)


def _stride(op: ir.Operation, form: IndexForm) -> Extent:
    known = form.known
    if known is None:
        raise ExtractionError(
            f"a stride of {op.name} depends on a loop or on data; expected a constant, a size or an index argument: "
            "compute the view outside the nest"
        )
    return known
