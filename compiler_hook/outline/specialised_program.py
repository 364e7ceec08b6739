"""What a Program becomes at concrete argument layouts: memory, unique concrete nests, and calls bound to both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch_pim.compiler_hook.outline.layout import Layout
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest
from torch_pim.compiler_hook.outline.program import Program
from torch_pim.features.nest import ELEMENT_BYTES

Number = int | float
ArgumentLayout = Layout | Number
"""What is known of an argument before the program runs: the layout of a tensor, or a number itself."""


@dataclass(frozen=True, slots=True)
class RootBuffer:
    """One allocation. Parameters keep the caller's memory; constants carry their data."""

    kind: Literal["parameter", "temporary", "constant"]
    element_type: str
    elements: int
    parameter: int = -1
    """Position of the parameter whose memory it is; -1 for other kinds."""
    data: bytes = b""

    @property
    def nbytes(self) -> int:
        return self.elements * ELEMENT_BYTES[self.element_type]


@dataclass(frozen=True, slots=True)
class BufferView:
    """Elements of one root buffer."""

    root: int
    """Index into SpecialisedProgram.roots."""
    layout: Layout
    element_type: str

    @property
    def nbytes(self) -> int:
        return self.layout.elements * ELEMENT_BYTES[self.element_type]


Value = BufferView | Number


@dataclass(frozen=True, slots=True)
class BoundArgument:
    """One argument of a call, and how the nest uses it."""

    value: Value
    loaded: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class BoundCall:
    """One execution of a nest."""

    nest: int
    """Index into SpecialisedProgram.nests."""
    arguments: tuple[BoundArgument, ...]
    iterations: int
    """Length of the linearised parallel range; 1 for a nest that is not partitionable."""
    site: str


@dataclass(frozen=True, slots=True)
class SpecialisedProgram:
    """A program with every size known. It holds no memory, so a model of any size can be planned."""

    program: Program
    roots: tuple[RootBuffer, ...]
    nests: tuple[ConcreteNest, ...]
    calls: tuple[BoundCall, ...]
    results: tuple[Value, ...]
