"""Replaces loads of values that are still at hand, and removes stores that are overwritten unread."""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.memory_effects import ElementAccess, accesses_below, element_access
from torch_pim.compiler_hook.lowering.passes import walk


def forward_stores(function: ir.Operation) -> None:
    """Works within straight-line code, and from before an `scf.if` into it; in place."""
    for load in walk(function, "memref.load"):
        access = element_access(load)
        value = _value_at(access) if access is not None else None
        if value is not None:
            load.results[0].replace_all_uses_with(value)
            load.erase()
    for store in walk(function, "memref.store"):
        access = element_access(store)
        if access is not None and _overwritten(access):
            store.erase()


def _value_at(load: ElementAccess) -> ir.Value | None:
    """The value that the place holds just before the load, if it is a known SSA value."""
    position = load.operation
    while True:
        for operation in reversed(_before(position)):
            access = element_access(operation)
            if access is not None and access.same_place(load):
                return access.stored if access.stored is not None else operation.results[0]
            if _may_write(operation, load.root):
                return None
        parent = position.parent
        if parent is None or parent.operation.name != "scf.if":
            return None
        position = parent.operation


def _overwritten(store: ElementAccess) -> bool:
    for operation in _after(store.operation):
        access = element_access(operation)
        if access is not None and access.stored is not None and access.same_place(store):
            return True
        accesses = accesses_below([operation])
        if accesses is None or any(other.root == store.root for other in accesses):
            return False
        if operation.name == "cf.assert":
            return False
    return False


def _may_write(operation: ir.Operation, root: ir.Value) -> bool:
    accesses = accesses_below([operation])
    return accesses is None or any(access.stored is not None and access.root == root for access in accesses)


def _before(operation: ir.Operation) -> list[ir.Operation]:
    operations = [view.operation for view in operation.block.operations]
    return operations[: operations.index(operation)]


def _after(operation: ir.Operation) -> list[ir.Operation]:
    operations = [view.operation for view in operation.block.operations]
    return operations[operations.index(operation) + 1 :]
