"""Buffer versions of a program: which call makes each value and which calls read it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from torch_pim.compiler_hook.outline.specialise import BufferView, SpecialisedProgram
from torch_pim.features.nest import ELEMENT_BYTES
from torch_pim.features.placement import BufferRole, BufferVersion

NO_CALL = -1


@dataclass(slots=True)
class _Version:
    identity: int
    nbytes: int
    role: BufferRole
    producer: int
    span: tuple[int, int]
    consumers: list[int] = field(default_factory=list)
    leaves: bool = False


def buffer_versions(program: SpecialisedProgram, weights: Collection[int]) -> tuple[BufferVersion, ...]:
    """Every value that flows between calls, from the caller, or to it.

    `weights` are the parameter positions that hold resident model weights. Stores to disjoint parts of a buffer make
    versions that live side by side; a store over a whole earlier version ends it.
    """
    flow = _Flow(program, frozenset(weights))
    for number, call in enumerate(program.calls):
        stores: list[BufferView] = []
        for argument in call.arguments:
            if isinstance(argument.value, BufferView):
                if argument.loaded:
                    flow.load(argument.value, number)
                if argument.stored:
                    stores.append(argument.value)
        for view in stores:
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
            # A nest that loads what it stored itself moves nothing.
            if version.producer != call and call not in version.consumers:
                version.consumers.append(call)

    def store(self, view: BufferView, call: int) -> None:
        span = view.layout.span()
        live = self._live(view.root)
        self.live[view.root] = [v for v in live if not (span[0] <= v.span[0] and v.span[1] <= span[1])]
        self.live[view.root].append(self._new(view, "temporary", call))

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
        return [v for v in self._live(view.root) if v.span[0] < high and low < v.span[1]]

    def _live(self, root: int) -> list[_Version]:
        """Live versions of a buffer; one that nobody stored yet begins as what the caller brought."""
        if root not in self.live:
            buffer = self.program.roots[root]
            if buffer.kind == "temporary":
                self.live[root] = []
            else:
                resident = buffer.kind == "constant" or buffer.parameter in self.weights
                whole = _Version(
                    len(self.versions), buffer.nbytes, "weight" if resident else "input", NO_CALL, (0, buffer.elements)
                )
                self.versions.append(whole)
                self.live[root] = [whole]
        return self.live[root]

    def _new(self, view: BufferView, role: BufferRole, call: int) -> _Version:
        nbytes = view.layout.elements * ELEMENT_BYTES[view.element_type]
        version = _Version(len(self.versions), nbytes, role, call, view.layout.span())
        self.versions.append(version)
        return version
