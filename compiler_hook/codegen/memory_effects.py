"""What operations read and write, by root buffer. Distinct root buffers never overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.lowering.views import VIEWS, root_buffer

_HARMLESS = (*VIEWS, "memref.dim", "memref.get_global", "memref.extract_strided_metadata")


@dataclass(frozen=True, slots=True)
class ElementAccess:
    """One load or store of an element."""

    operation: ir.Operation
    memref: ir.Value
    indices: tuple[ir.Value, ...]
    root: ir.Value
    stored: ir.Value | None
    """The value that is stored; None for a load."""

    def same_place(self, other: ElementAccess) -> bool:
        return self.memref == other.memref and self.indices == other.indices


def element_access(operation: ir.Operation) -> ElementAccess | None:
    """The access of a memref.load or memref.store, None for other operations."""
    if operation.name == "memref.load":
        memref, *indices = operation.operands
        return ElementAccess(operation, memref, tuple(indices), root_buffer(memref), None)
    if operation.name == "memref.store":
        value, memref, *indices = operation.operands
        return ElementAccess(operation, memref, tuple(indices), root_buffer(memref), value)
    return None


def accesses_below(operations: Iterable[ir.Operation]) -> list[ElementAccess] | None:
    """All accesses of the operations and the regions in them; None if one has effects that are not understood."""
    found: list[ElementAccess] = []
    for top in operations:
        for operation in walk(top):
            access = element_access(operation)
            if access is not None:
                found.append(access)
            elif not _without_effects(operation):
                return None
    return found


def _without_effects(operation: ir.Operation) -> bool:
    if operation.name in _HARMLESS:
        return True
    if operation.name.startswith(("memref.", "func.", "linalg.", "vector.", "bufferization.")):
        return False
    return not any(isinstance(operand.type, ir.MemRefType) for operand in operation.operands)
