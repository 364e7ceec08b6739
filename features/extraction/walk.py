"""Walks the body of a nest function and records what it does, operation by operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from torch_mlir import ir

from torch_pim.features.extent import Extent
from torch_pim.features.extraction.affine_maps import operation_count
from torch_pim.features.extraction.conditions import true_share
from torch_pim.features.extraction.errors import ExtractionError
from torch_pim.features.extraction.index_form import IndexForm, add, counter, loaded, mixed, multiply
from torch_pim.features.extraction.index_values import IndexValues
from torch_pim.features.extraction.memref_layout import DYNAMIC, element_type, row_major
from torch_pim.features.extraction.operation_kinds import FREE_OPERATIONS, counted
from torch_pim.features.extraction.recorder import AccessKind, LoopKind, Recorder
from torch_pim.features.extraction.trip_counts import STAND_IN_TRIP, trip_count
from torch_pim.features.extraction.views import VIEW_OPERATIONS, View
from torch_pim.features.nest import NO_LOOP


@dataclass(frozen=True, slots=True)
class Place:
    """Where the walk is: innermost loop, and the share of its iterations that come here."""

    loop: int = NO_LOOP
    share: float = 1.0


class NestWalk:
    """One walk over one function. Trip counts, forms and views live in `recorder` and `values`."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.values = IndexValues(self.recorder.trips)

    def block(self, operations: Iterable[ir.Operation], place: Place) -> None:
        for op in operations:
            self._visit(op.operation, place)

    def _visit(self, op: ir.Operation, place: Place) -> None:
        name = op.name
        if name == "memref.load":
            self._load(op, op.operands[0], list(op.operands)[1:], place)
        elif name == "memref.store":
            self._access("store", op.operands[1], list(op.operands)[2:], place)
        elif name in ("memref.alloc", "memref.alloca", "memref.get_global"):
            self._allocation(op)
        elif name == "memref.copy":
            self._copy(op, place)
        elif name in ("memref.atomic_rmw", "memref.generic_atomic_rmw"):
            self._atomic(op, place)
        elif name in ("scf.for", "scf.parallel"):
            self._counted_loop(op, place)
        elif name == "scf.while":
            self._while(op, place)
        elif name in ("scf.if", "scf.index_switch"):
            self._branch(op, place)
        elif name in ("scf.reduce", "scf.execute_region", "memref.alloca_scope"):
            self._regions(op, place)
        elif name not in FREE_OPERATIONS and name not in VIEW_OPERATIONS:
            self._count(op, place)

    # Memory -----------------------------------------------------------------------------------------------------

    def _load(self, op: ir.Operation, memref: ir.Value, indices: Sequence[ir.Value], place: Place) -> None:
        form = self._access("load", memref, indices, place)
        self.values.set_form(op.results[0], loaded(form.loops))

    def _access(self, kind: AccessKind, memref: ir.Value, indices: Sequence[ir.Value], place: Place) -> IndexForm:
        view = self.values.view(memref)
        form = view.position([self.values.form(index) for index in indices])
        self.recorder.add_access(kind, view, form, place.loop, place.share)
        return form

    def _allocation(self, op: ir.Operation) -> None:
        result = op.results[0]
        kind = ir.MemRefType(result.type)
        dynamic = iter(op.operands)
        sizes = [self.values.form(next(dynamic)) if n == DYNAMIC else IndexForm(int(n)) for n in kind.shape]
        # A size that depends on data is as unknown as a trip count that does.
        known: list[Extent] = [STAND_IN_TRIP if size.known is None else size.known for size in sizes]
        name = element_type(kind.element_type)
        buffer = self.recorder.add_buffer(name, tuple(known))
        self.values.set_view(result, View(buffer, name, tuple(sizes), row_major(known), IndexForm(0)))

    def _copy(self, op: ir.Operation, place: Place) -> None:
        """A copy is recorded as the loops that it stands for."""
        source, target = (self.values.view(operand) for operand in op.operands)
        indices: list[IndexForm] = []
        loop = place.loop
        for size in target.sizes:
            trip, estimated = trip_count(IndexForm(0), size, IndexForm(1), self.recorder.trips)
            loop = self.recorder.add_loop("sequential", trip, loop, estimated=estimated)
            indices.append(counter(loop, 1))
        self.recorder.add_access("load", source, source.position(indices), loop, place.share)
        self.recorder.add_access("store", target, target.position(indices), loop, place.share)

    def _atomic(self, op: ir.Operation, place: Place) -> None:
        first = 1 if op.name == "memref.atomic_rmw" else 0
        memref, indices = op.operands[first], list(op.operands)[first + 1 :]
        self._load(op, memref, indices, place)
        self._access("store", memref, indices, place)
        if op.name == "memref.atomic_rmw":
            self.recorder.add_operation("add", str(op.results[0].type), place.loop, place.share)
        self._regions(op, place)

    # Control ----------------------------------------------------------------------------------------------------

    def _counted_loop(self, op: ir.Operation, place: Place) -> None:
        body = op.regions[0].blocks[0]
        operands = list(op.operands)
        rank = 1 if op.name == "scf.for" else len(body.arguments)
        kind: LoopKind = "sequential" if op.name == "scf.for" else "parallel"
        loop = place.loop
        bounds = zip(operands[:rank], operands[rank : 2 * rank], operands[2 * rank : 3 * rank], strict=True)
        for argument, values in zip(list(body.arguments)[:rank], bounds, strict=True):
            lower, upper, step = (self.values.form(value) for value in values)
            trip, estimated = trip_count(lower, upper, step, self.recorder.trips)
            loop = self.recorder.add_loop(kind, trip, loop, estimated=estimated)
            self.values.set_form(argument, add(lower, multiply(counter(loop, 1), step)))
        initial = [self.values.form(value) for value in operands[3 * rank :]]
        for argument, form in zip(list(body.arguments)[rank:], initial, strict=False):
            self.values.set_form(argument, _carried(loop, form))
        self.block(body.operations, Place(loop, place.share))
        for result, form in zip(op.results, initial, strict=True):
            self.values.set_form(result, mixed(_carried(loop, form)))

    def _while(self, op: ir.Operation, place: Place) -> None:
        """How often a condition holds is not known: the loop is marked and counted with a stand-in."""
        loop = self.recorder.add_loop("sequential", STAND_IN_TRIP, place.loop, estimated=True)
        unknown = loaded(frozenset((loop,)))
        for region in op.regions:
            for argument in region.blocks[0].arguments:
                self.values.set_form(argument, unknown)
            self.block(region.blocks[0].operations, Place(loop, place.share))
        for result in op.results:
            self.values.set_form(result, unknown)

    def _branch(self, op: ir.Operation, place: Place) -> None:
        """A condition on loop counters is counted out. Else the sides of a branch are taken equally often, and a branch
        with one side is a guard against the rare case, so that its body always runs.
        """
        sides = [region.blocks[0] for region in op.regions if len(region.blocks)]
        self.recorder.add_operation("branch", "i1", place.loop, place.share)
        shares = [1 / len(sides)] * len(sides)
        if op.name == "scf.if":
            known = true_share(op.operands[0], self.values.form, self.recorder.trips)
            if known is not None:
                shares = [known, 1.0 - known][: len(sides)]
        for side, share in zip(sides, shares, strict=True):
            self.block(side.operations, replace(place, share=place.share * share))
        condition = self.values.form(op.operands[0])
        for number, result in enumerate(op.results):
            yielded = [self.values.form(list(side.operations)[-1].operation.operands[number]) for side in sides]
            same = all(form == yielded[0] for form in yielded)
            self.values.set_form(result, yielded[0] if same else mixed(condition, *yielded))

    def _regions(self, op: ir.Operation, place: Place) -> None:
        """Regions that run once each time they are met."""
        for region in op.regions:
            for block in region.blocks:
                self.block(block.operations, place)

    # Arithmetic -------------------------------------------------------------------------------------------------

    def _count(self, op: ir.Operation, place: Place) -> None:
        shaped = any(isinstance(value.type, ir.ShapedType) for value in [*op.operands, *op.results])
        if len(op.regions) or shaped:
            raise ExtractionError(
                f"{op.name} is not part of the canonical form of a nest; expected scf loops and branches, memref loads "
                "and stores, and arith, math or affine arithmetic on scalars: lower it before outlining"
            )
        if not len(op.operands) and not len(op.results):
            return
        if op.name.startswith("affine."):
            count = operation_count(ir.AffineMapAttr(op.attributes["map"]).value)
            self.recorder.add_operation("address", "index", place.loop, count * place.share)
            return
        name = _counted_type(op)
        constant = len(op.operands) > 1 and self.values.form(op.operands[1]).known is not None
        for kind, count in counted(op.name, name, constant):
            self.recorder.add_operation(kind, name, place.loop, count * place.share)


def _carried(loop: int, initial: IndexForm) -> IndexForm:
    """A value that a loop hands from one iteration to the next: it moves with the loop, no one knows how fast."""
    return mixed(initial, counter(loop, 1))


def _counted_type(op: ir.Operation) -> str:
    """Element type that an operation computes on: of its operands for comparisons, of its result for all else."""
    if op.name in ("arith.index_cast", "arith.index_castui"):
        return "index"
    by_operand = op.name in ("arith.cmpi", "arith.cmpf") or not len(op.results)
    return str((op.operands if by_operand else op.results)[0].type)


def is_loop_invariant(value: ir.Value) -> bool:
    """True for arguments and constants of the function, and for what is computed from them alone."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return bool(owner.owner.operation.name == "func.func")
    op = owner.operation
    computed = op.name != "memref.load" and not len(op.regions)
    return computed and all(is_loop_invariant(operand) for operand in op.operands)
