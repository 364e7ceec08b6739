"""A compiled nest, and the nest bound to its arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from torch_pim.compiler_hook.codegen.engine import Engine
from torch_pim.compiler_hook.codegen.memref import MemRefValue
from torch_pim.compiler_hook.codegen.scalars import scalar_bits
from torch_pim.compiler_hook.errors import NestAssertionError, ShapeError
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, NestFunction
from torch_pim.features.nest import LoopNest

Argument = MemRefValue | int | float | bool
"""A buffer for a MemRefParameter, a Python number for a ScalarParameter."""

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_REMEMBERED_SHAPES = 256


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of one execution of a nest at concrete shapes."""

    iterations: int
    """Length of the linearised parallel range; 1 for a nest that is not partitionable."""
    accesses: int
    """Loads and stores of the whole nest, by its record."""


class BoundKernel:
    """Runs iterations [lo, hi) of the nest's linearised parallel range; releases the GIL.

    Disjoint ranges may run on several threads at once. Raises ValueError for a range outside [0, iterations), and
    NestAssertionError when an assertion of the nest failed; its outputs are incomplete then.
    """

    __slots__ = ("_address", "_arguments", "_call", "_fields", "_kernel", "accesses", "iterations")

    def __init__(self, kernel: Kernel, slots: Sequence[int], arguments: Sequence[Argument], extent: Extent) -> None:
        """`slots` is the array that entry points read; kernel and arguments are kept alive."""
        self.iterations = extent.iterations
        self.accesses = extent.accesses
        self._kernel = kernel
        self._arguments = tuple(arguments)
        self._fields = (ctypes.c_int64 * len(slots))(*slots)
        self._address = ctypes.addressof(self._fields)
        self._call = kernel.entry

    def __call__(self, lo: int, hi: int) -> None:
        if not 0 <= lo <= hi <= self.iterations:
            raise ValueError(f"{self.name}: expected a range within [0, {self.iterations}), found [{lo}, {hi})")
        message = self._call(lo, hi, self._address)
        if message:
            operators = ", ".join(self._kernel.function.loop_nest.aten_operators)
            where = f" (in {operators})" if operators else ""
            raise NestAssertionError(f"{self.name}: {ctypes.string_at(message).decode(errors='replace')}{where}")

    @property
    def name(self) -> str:
        return self._kernel.name


class Kernel:
    """The compiled code of one nest; keeps the engine that holds it alive."""

    def __init__(self, function: NestFunction, engine: Engine, address: int) -> None:
        self.function = function
        self.entry = _ENTRY(address)
        self._engine = engine
        self._symbols = tuple(sorted(function.loop_nest.symbols))
        self._extents: dict[tuple[int, ...], Extent] = {}

    @property
    def name(self) -> str:
        return self.function.loop_nest.name

    def bind(self, arguments: Sequence[Argument]) -> BoundKernel:
        """The nest on these arguments; raises ShapeError naming the first one that does not fit its parameter."""
        return self.bind_slots(self.slots(arguments), arguments)

    def bind_slots(self, slots: Sequence[int], arguments: Sequence[Argument]) -> BoundKernel:
        """As `bind`, with the slots given: for code with more arguments than the nest has parameters."""
        return BoundKernel(self, slots, arguments, self._extent(arguments))

    def slots(self, arguments: Sequence[Argument]) -> list[int]:
        """The array of 8-byte fields that the entry point reads; raises ShapeError."""
        parameters = self.function.parameters
        if len(arguments) != len(parameters):
            raise ShapeError(f"{self.name}: expected {len(parameters)} arguments, found {len(arguments)}")
        slots: list[int] = []
        for position, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            if isinstance(parameter, MemRefParameter):
                if not isinstance(argument, MemRefValue):
                    raise ShapeError(f"{self.name}: argument {position}: expected a buffer, found {argument!r}")
                check_buffer(parameter, argument, f"{self.name}: argument {position}")
                slots += memref_slots(argument)
            else:
                slots.append(scalar_bits(parameter.element_type, argument, f"{self.name}: argument {position}"))
        return slots

    def _extent(self, arguments: Sequence[Argument]) -> Extent:
        key = tuple(_symbol_value(symbol, arguments) for symbol in self._symbols)
        extent = self._extents.get(key)
        if extent is None:
            if len(self._extents) >= _REMEMBERED_SHAPES:
                self._extents.clear()
            nest = self.function.loop_nest.at(dict(zip(self._symbols, key, strict=True)))
            extent = self._extents[key] = extent_of(nest)
        return extent


def extent_of(nest: LoopNest) -> Extent:
    """Iterations and accesses of a concrete nest."""
    accesses = sum(access.probability * nest.executions(access.loop) for access in nest.accesses)
    return Extent(nest.parallel_trip if nest.partitionable else 1, round(accesses))


def memref_slots(value: MemRefValue) -> list[int]:
    """The descriptor fields of a buffer: allocated and aligned pointer, offset, sizes, strides."""
    return [value.pointer, value.pointer, value.offset, *value.shape, *value.strides]


def check_buffer(parameter: MemRefParameter, value: MemRefValue, what: str) -> None:
    """Raises ShapeError unless type, rank and every static size, stride and offset agree."""
    wrong = None
    if value.element_type != parameter.element_type:
        wrong = "element type"
    elif not _agree(parameter.shape, value.shape):
        wrong = "shape"
    elif parameter.offset is not None and parameter.offset != value.offset:
        wrong = "offset"
    elif parameter.strides != value.strides and not _strides_agree(parameter, value):
        wrong = "strides"
    if wrong is not None:
        raise ShapeError(f"{what}: {wrong} does not fit: expected {parameter}, found {value}")


def _agree(expected: tuple[int | None, ...], found: tuple[int, ...]) -> bool:
    if expected == found:
        return True
    return len(expected) == len(found) and all(e is None or e == f for e, f in zip(expected, found, strict=True))


def _strides_agree(parameter: MemRefParameter, value: MemRefValue) -> bool:
    """The stride of a dimension with one element or none is never used, so any value will do."""
    if 0 in value.shape:
        return True
    triples = zip(parameter.strides, value.strides, value.shape, strict=True)
    return all(expected is None or expected == found or size == 1 for expected, found, size in triples)


def _symbol_value(symbol: str, arguments: Sequence[Argument]) -> int:
    """Value of `a<k>`, `a<k>.d<i>` or `a<k>.s<i>` (see NestFunction.loop_nest)."""
    name, _, part = symbol.partition(".")
    argument = arguments[int(name[1:])]
    if isinstance(argument, MemRefValue):
        return (argument.shape if part[0] == "d" else argument.strides)[int(part[1:])]
    return int(argument)
