"""The record of one loop nest: loops, accesses, operations and buffers, without any MLIR object."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal

from torch_pim.features.extent import Extent, Polynomial, concrete, evaluate, symbols_of

ELEMENT_BYTES: Mapping[str, int] = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "index": 8,
}  # fmt: skip
"""Bytes in memory per element, by MLIR element type (i1 is stored as one byte)."""

OPERATION_KINDS = (
    "add", "multiply", "divide", "square_root", "transcendental",
    "compare", "select", "convert", "logic", "address", "branch", "other",
)  # fmt: skip
"""`add` also covers subtract, negate, absolute, minimum and maximum; `address` is index arithmetic."""

NestKind = Literal["compute", "copy", "fill"]
NO_LOOP = -1


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of the nest's loop tree, in pre-order."""

    kind: Literal["parallel", "sequential"]
    trip: Extent
    """Number of iterations."""
    parent: int
    """Index of the enclosing loop, NO_LOOP for an outermost one."""
    estimated: bool = False
    """True where `trip` is a stand-in, because the real count varies or depends on data."""


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store, executed once per iteration of its innermost loop (times `probability`)."""

    buffer: int
    kind: Literal["load", "store"]
    element_type: str
    loop: int
    """Index of the innermost enclosing loop, NO_LOOP outside all loops."""
    byte_strides: tuple[tuple[int, Extent], ...]
    """(loop index, bytes per iteration of that loop), sorted by loop; absent means 0."""
    indirect: bool = False
    """The address depends on loaded data (gather, scatter)."""
    affine: bool = True
    """False where the address, apart from loaded data, is no linear function of the loop counters (floor division,
    remainder); the strides then only estimate how fast it moves."""
    probability: float = 1.0
    """Share of iterations that execute it: exact where loop counters decide a branch, 0.5 per side where data does."""
    byte_offset: Extent = 0
    """Distance in bytes from the first recorded access of the same buffer, all loop counters at zero."""
    indirect_loops: tuple[int, ...] = ()
    """For an indirect access, the loops that the loaded part of its address varies with, ascending."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`count` operations of one kind and element type per iteration of the loop."""

    kind: str
    element_type: str
    loop: int
    count: float


@dataclass(frozen=True, slots=True)
class Buffer:
    """One memory operand of the nest. The memref parameters come first, in order, then local allocations."""

    element_type: str
    shape: tuple[Extent, ...]
    loaded: bool
    stored: bool
    nbytes: Extent
    """Bytes spanned by the elements (product of shape times element size)."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The unit of decision. `code_hash` keys compiled code, `feature_hash` the record itself."""

    name: str
    loops: tuple[Loop, ...]
    parallel_rank: int
    """How many leading loops form the parallel range that is split over cores."""
    accesses: tuple[Access, ...]
    operations: tuple[Operation, ...]
    buffers: tuple[Buffer, ...]
    kind: NestKind
    partitionable: bool
    """False for wrapped residue (sequential loops, scalar code): such nests stay on the host."""
    code_hash: str
    aten_operators: tuple[str, ...] = ()
    call_sites: tuple[str, ...] = ()
    multiplicity: int = 1

    def at(self, bindings: Mapping[str, int]) -> LoopNest:
        """Concrete copy with every symbolic extent replaced; raises UnboundSymbolError."""

        def value(extent: Extent) -> int:
            return evaluate(extent, bindings)

        return replace(
            self,
            loops=tuple(replace(loop, trip=max(0, value(loop.trip))) for loop in self.loops),
            accesses=tuple(
                replace(
                    a,
                    byte_strides=tuple((loop, value(s)) for loop, s in a.byte_strides if value(s)),
                    byte_offset=value(a.byte_offset),
                )
                for a in self.accesses
            ),
            buffers=tuple(
                replace(b, shape=tuple(value(s) for s in b.shape), nbytes=value(b.nbytes)) for b in self.buffers
            ),
        )

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbolic dimensions that `at` needs."""
        found: frozenset[str] = frozenset()
        for loop in self.loops:
            found |= symbols_of(loop.trip)
        for access in self.accesses:
            found |= symbols_of(access.byte_offset)
            for _, stride in access.byte_strides:
                found |= symbols_of(stride)
        for buffer in self.buffers:
            found |= symbols_of(buffer.nbytes)
            for size in buffer.shape:
                found |= symbols_of(size)
        return found

    @property
    def parallel_trip(self) -> int:
        """Iterations of the parallel range; 1 when nothing is parallel."""
        return math.prod(concrete(loop.trip) for loop in self.loops[: self.parallel_rank])

    def enclosing(self, loop: int) -> tuple[int, ...]:
        """Loop indices from the outermost to `loop` itself; empty for NO_LOOP."""
        path: list[int] = []
        while loop != NO_LOOP:
            path.append(loop)
            loop = self.loops[loop].parent
        return tuple(reversed(path))

    def executions(self, loop: int) -> int:
        """How often the body of `loop` runs in one execution of the nest."""
        return math.prod(concrete(self.loops[i].trip) for i in self.enclosing(loop))

    def is_innermost(self, loop: int) -> bool:
        return all(other.parent != loop for other in self.loops)

    @property
    def feature_hash(self) -> str:
        """sha256 of the structure alone: not of name, code, multiplicity or origin."""
        structure = asdict(
            replace(self, name="", code_hash="", aten_operators=(), call_sites=(), multiplicity=1), dict_factory=dict
        )
        return hashlib.sha256(json.dumps(structure, sort_keys=True, default=str).encode()).hexdigest()


__all__ = [
    "ELEMENT_BYTES",
    "NO_LOOP",
    "OPERATION_KINDS",
    "Access",
    "Buffer",
    "Loop",
    "LoopNest",
    "NestKind",
    "Operation",
    "Polynomial",
]
