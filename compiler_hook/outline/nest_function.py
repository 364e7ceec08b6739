"""One unique nest as text and types: what code generation, tracing and the caches work on."""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.features.nest import LoopNest


@dataclass(frozen=True, slots=True)
class MemRefParameter:
    """A strided buffer argument; None stands for a dynamic size, stride or offset (in elements)."""

    element_type: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    offset: int | None


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A scalar argument, e.g. `index`, `i64`, `f32`."""

    element_type: str


Parameter = MemRefParameter | ScalarParameter


@dataclass(frozen=True, slots=True)
class NestFunction:
    """A unique nest in canonical form.

    `canonical` is the text of an MLIR module with one function `@nest(memrefs and scalars...)`. Its body holds
    pure producers (constants, views) and exactly one top-level `scf.parallel` (partitionable), or any sequence of
    residue operations (not partitionable). Code generation derives `nest(lo, hi, memrefs and scalars...)` from it,
    where [lo, hi) is a sub-range of the row-major linearised parallel range.
    """

    code_hash: str
    canonical: str
    parameters: tuple[Parameter, ...]
    loop_nest: LoopNest
    """Symbolic where the shapes are: symbols are `a<k>.d<i>` (size i of memref parameter k), `a<k>.s<i>` (its
    stride i) and `a<k>` (value of index parameter k)."""


@dataclass(frozen=True, slots=True)
class ConcreteParameter:
    """A parameter with all sizes known: what a buffer of the right size and layout, or a number, is made from."""

    element_type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    is_scalar: bool = False
    scalar_value: int | float = 0


@dataclass(frozen=True, slots=True)
class ConcreteNest:
    """A unique nest at concrete shapes: what is timed, traced and labelled."""

    function: NestFunction
    loop_nest: LoopNest
    """Concrete: `loop_nest.symbols` is empty."""
    parameters: tuple[ConcreteParameter, ...]

    @property
    def key(self) -> tuple[str, str]:
        """(code hash, feature hash): identical keys have identical timings."""
        return self.function.code_hash, self.loop_nest.feature_hash
