"""Collects loops, accesses, operations and buffers while a nest is walked, and makes the record's tuples of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Literal

from torch_pim.features import extent
from torch_pim.features.extent import Extent
from torch_pim.features.extraction.index_form import IndexForm
from torch_pim.features.extraction.memref_layout import product
from torch_pim.features.extraction.views import View
from torch_pim.features.nest import ELEMENT_BYTES, OPERATION_KINDS, Access, Buffer, Loop, Operation

LoopKind = Literal["parallel", "sequential"]
AccessKind = Literal["load", "store"]


@dataclass(slots=True)
class Recorder:
    """Parts of a LoopNest in the order in which the walk meets them."""

    loops: list[Loop] = field(default_factory=list)
    trips: list[Extent] = field(default_factory=list)
    """Trip count of each loop, as index analysis wants them."""
    _accesses: list[tuple[Access, Extent]] = field(default_factory=list)
    """Each access with the constant part of its address in bytes."""
    _operations: dict[tuple[int, str, str], float] = field(default_factory=lambda: defaultdict(float))
    _buffers: list[tuple[str, tuple[Extent, ...]]] = field(default_factory=list)

    def add_loop(self, kind: LoopKind, trip: Extent, parent: int, *, estimated: bool) -> int:
        self.loops.append(Loop(kind, trip, parent, estimated))
        self.trips.append(trip)
        return len(self.loops) - 1

    def add_buffer(self, element_type: str, sizes: tuple[Extent, ...]) -> int:
        self._buffers.append((element_type, sizes))
        return len(self._buffers) - 1

    def add_access(self, kind: AccessKind, view: View, place: IndexForm, loop: int, probability: float) -> None:
        """An access to element `place` of the view's buffer in each iteration of `loop`."""
        size = ELEMENT_BYTES[view.element_type]
        access = Access(
            buffer=view.buffer,
            kind=kind,
            element_type=view.element_type,
            loop=loop,
            byte_strides=tuple((index, extent.multiply(c, size)) for index, c in place.coefficients),
            indirect=place.indirect,
            affine=place.affine,
            probability=probability,
            indirect_loops=tuple(sorted(place.indirect_loops)),
        )
        regular = place.exact and place.affine and not place.indirect
        self._accesses.append((access, extent.multiply(place.constant, size) if regular else 0))

    def add_operation(self, kind: str, element_type: str, loop: int, count: float) -> None:
        self._operations[loop, kind, element_type] += count

    def accesses(self) -> tuple[Access, ...]:
        """All accesses in program order, offsets counted from the first access of the same buffer."""
        first: dict[int, Extent] = {}
        found = []
        for access, start in self._accesses:
            origin = first.setdefault(access.buffer, start)
            offset = 0 if access.indirect or not access.affine else extent.subtract(start, origin)
            found.append(replace(access, byte_offset=offset))
        return tuple(found)

    def operations(self) -> tuple[Operation, ...]:
        """One entry per loop, kind and element type, in that order."""
        order = {kind: position for position, kind in enumerate(OPERATION_KINDS)}
        keys = sorted(self._operations, key=lambda key: (key[0], order[key[1]], key[2]))
        return tuple(Operation(kind, name, loop, self._operations[loop, kind, name]) for loop, kind, name in keys)

    def buffers(self) -> tuple[Buffer, ...]:
        loaded = {access.buffer for access, _ in self._accesses if access.kind == "load"}
        stored = {access.buffer for access, _ in self._accesses if access.kind == "store"}
        return tuple(
            Buffer(
                element_type=name,
                shape=sizes,
                loaded=index in loaded,
                stored=index in stored,
                nbytes=extent.multiply(product(sizes), ELEMENT_BYTES[name]),
            )
            for index, (name, sizes) in enumerate(self._buffers)
        )
