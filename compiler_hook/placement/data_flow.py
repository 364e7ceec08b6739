"""Buffer versions of a program: which call makes each value and which calls read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from torch_pim.compiler_hook.outline.layout import Layout, contiguous
from torch_pim.compiler_hook.outline.specialised_program import BufferView, SpecialisedProgram
from torch_pim.features.analysis.footprint import buffer_extents
from torch_pim.features.nest import LoopNest
from torch_pim.features.placement import BufferRole, BufferVersion

NO_CALL = -1


@dataclass(slots=True)
class _Version:
    identity: int
    nbytes: int
    role: BufferRole
    producer: int
    layout: Layout
    consumers: list[int] = field(default_factory=list)
    leaves: bool = False


def buffer_versions(program: SpecialisedProgram, weights: Collection[int]) -> tuple[BufferVersion, ...]:
    """Every value that flows between calls, from the caller, or to it.

    `weights` are the parameter positions that hold resident model weights. Stores to disjoint parts of a buffer make
    versions that live side by side; a store over a whole earlier version ends it. A call that stores and then loads its
    own result moves nothing.
    """
    flow = _Flow(program, frozenset(weights))
    for number, call in enumerate(program.calls):
        stored_elements = _stored_elements(program.nests[call.nest].loop_nest)
        buffers = [(a, a.value) for a in call.arguments if isinstance(a.value, BufferView)]
        for position, (argument, view) in enumerate(buffers):
            # What a store leaves of the earlier value belongs to the new one.
            if argument.loaded or (argument.stored and stored_elements[position] < view.layout.elements):
                flow.load(view, number)
        for argument, view in buffers:
            if argument.stored:
                flow.store(view, number)
    for result in program.results:
        if isinstance(result, BufferView):
            flow.leave(result)
    return flow.finish()


class _Flow:
    def __init__(self, program: SpecialisedProgram, weights: frozenset[int]) -> None:
        self.program = program
        self.weights = weights
        self.versions: list[_Version] = []
        self.live: dict[int, list[_Version]] = {}

    def load(self, view: BufferView, call: int) -> None:
        for version in self._overlapping(view):
            if call not in version.consumers:
                version.consumers.append(call)

    def store(self, view: BufferView, call: int) -> None:
        live = [version for version in self._live(view.root) if not _covers(view.layout, version.layout)]
        self.live[view.root] = [*live, self._new(view, "temporary", call)]

    def leave(self, view: BufferView) -> None:
        for version in self._overlapping(view):
            version.leaves = True
            if version.role == "temporary":
                version.role = "output"

    def finish(self) -> tuple[BufferVersion, ...]:
        return tuple(
            BufferVersion(v.identity, v.nbytes, v.role, v.producer, tuple(v.consumers), v.leaves)
            for v in self.versions
            if v.consumers or v.leaves or v.producer != NO_CALL
        )

    def _overlapping(self, view: BufferView) -> list[_Version]:
        low, high = view.layout.span()
        spans = [(version, *version.layout.span()) for version in self._live(view.root)]
        return [version for version, start, stop in spans if start < high and low < stop]

    def _live(self, root: int) -> list[_Version]:
        """Live versions of a buffer; one that nobody stored yet begins as what the caller brought."""
        if root not in self.live:
            buffer = self.program.roots[root]
            if buffer.kind == "temporary":
                self.live[root] = []
            else:
                resident = buffer.kind == "constant" or buffer.parameter in self.weights
                role: BufferRole = "weight" if resident else "input"
                whole = _Version(len(self.versions), buffer.nbytes, role, NO_CALL, contiguous((buffer.elements,)))
                self.versions.append(whole)
                self.live[root] = [whole]
        return self.live[root]

    def _new(self, view: BufferView, role: BufferRole, call: int) -> _Version:
        version = _Version(len(self.versions), view.nbytes, role, call, view.layout)
        self.versions.append(version)
        return version


@lru_cache(maxsize=1024)
def _stored_elements(nest: LoopNest) -> Mapping[int, int]:
    """Distinct elements that one execution surely stores, by buffer; 0 where data decides which ones."""
    stores = [access for access in nest.accesses if access.kind == "store"]
    extents = buffer_extents(nest, stores, frozenset(range(len(nest.loops))))
    scattered = {access.buffer for access in stores if access.indirect}
    return {number: 0 if number in scattered else round(e.elements) for number, e in extents.items()}


def _covers(new: Layout, old: Layout) -> bool:
    """True when storing all of `new` surely replaces all of `old`; a strided store with gaps replaces only its like."""
    (start, stop), (first, last) = new.span(), old.span()
    dense = new.elements == stop - start
    return new == old or (dense and start <= first and last <= stop)
