"""A lowered function as a list of steps: buffer bookkeeping, views, index arithmetic and nest calls.

Values live in numbered slots. An operand is a Slot or a plain number.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, NestFunction, Parameter


@dataclass(frozen=True, slots=True)
class Slot:
    """A numbered value of the program."""

    index: int


Operand = Slot | int | float


@dataclass(frozen=True, slots=True)
class Allocate:
    """A new temporary buffer, row-major."""

    result: Slot
    element_type: str
    sizes: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class GlobalTensor:
    """A constant tensor of the module; `data` is little-endian, row-major."""

    result: Slot
    element_type: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class View:
    """A memref view. `kind` is the operation's short name; the meaning of the fields follows the MLIR operation."""

    kind: str
    result: Slot
    source: Slot
    layout: MemRefParameter
    """Result layout; None entries are computed from the source at run time."""
    offsets: tuple[Operand, ...] = ()
    sizes: tuple[Operand, ...] = ()
    strides: tuple[Operand, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    """Reassociation of expand_shape and collapse_shape."""
    dropped: tuple[int, ...] = ()
    """Source dimensions that a rank-reducing subview drops."""
    shape: Slot | None = None
    """Shape tensor of memref.reshape."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """Size of one dimension of a buffer."""

    result: Slot
    source: Slot
    dimension: Operand


@dataclass(frozen=True, slots=True)
class Compute:
    """A scalar operation on bookkeeping values, by MLIR operation name."""

    operation: str
    result: Slot
    operands: tuple[Operand, ...]
    operand_type: str
    """MLIR type of the first operand."""
    result_type: str
    predicate: int = 0
    """Of arith.cmpi."""


@dataclass(frozen=True, slots=True)
class LoadScalar:
    """Reads a shape tensor."""

    result: Slot
    source: Slot
    indices: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class StoreScalar:
    """Writes a shape tensor."""

    value: Operand
    target: Slot
    indices: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """A run-time condition on shapes; a false one is a ShapeError with the message."""

    condition: Operand
    message: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a nest call and how the nest uses it."""

    value: Operand
    loaded: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class Invoke:
    """One call of a unique nest."""

    function: int
    """Index into Program.functions."""
    arguments: tuple[Argument, ...]
    site: str


Step = Allocate | GlobalTensor | View | Dimension | Compute | LoadScalar | StoreScalar | Check | Invoke


@dataclass(frozen=True, slots=True)
class Program:
    """One public function of a module."""

    name: str
    parameters: tuple[Parameter, ...]
    """Parameter k is in Slot(k)."""
    steps: tuple[Step, ...]
    results: tuple[Operand, ...]
    result_types: tuple[Parameter, ...]
    """A scalar result may be a slot that holds a buffer of one element."""
    functions: tuple[NestFunction, ...]
