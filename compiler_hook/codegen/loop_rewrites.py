"""Keeps in registers what a loop would load again and again: invariant loads and accumulators."""

from __future__ import annotations

import itertools

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.memory_effects import ElementAccess, accesses_below, element_access
from torch_pim.compiler_hook.codegen.rewriting import branch_if_less, constant_trips, end_block, is_inside
from torch_pim.compiler_hook.lowering.passes import walk

_MOVABLE = ("arith.", "math.", "memref.dim", "memref.get_global")


def keep_in_registers(function: ir.Operation) -> None:
    """Hoists invariant loads and turns accumulators into loop-carried values, innermost loops first, in place."""
    for loop in reversed(walk(function, "scf.for")):
        _hoist_invariant_loads(loop)
        _promote_accumulators(loop)


def _hoist_invariant_loads(loop: ir.Operation) -> None:
    accesses = accesses_below(_body(loop))
    if accesses is None:
        return
    written = {access.root for access in accesses if access.stored is not None}
    chosen: list[ir.Operation] = []
    useful = False
    for operation in _body(loop):
        invariant = all(not is_inside(v, loop) or _defined_by(v, chosen) for v in operation.operands)
        if walk(operation, "cf.assert") and not (operation.name == "cf.assert" and invariant):
            break  # What follows may be safe only because the assertion held.
        access = element_access(operation)
        if access is not None and access.stored is None and invariant and access.root not in written:
            chosen.append(operation)
            useful = True
        elif operation.name == "cf.assert" or (operation.name.startswith(_MOVABLE) and invariant):
            chosen.append(operation)
    if useful and _guard_empty_loop(loop):
        for operation in chosen:
            operation.move_before(loop)


def _promote_accumulators(loop: ir.Operation) -> None:
    accesses = accesses_below(_body(loop))
    if accesses is None or walk(loop, "cf.assert"):
        return
    body = loop.regions[0].blocks[0]
    groups: dict[ir.Value, list[ElementAccess]] = {}
    for access in accesses:
        groups.setdefault(access.root, []).append(access)
    promoted = [group for group in groups.values() if _is_accumulator(group, loop, body)]
    if promoted and _guard_empty_loop(loop):
        _carry(loop, promoted)


def _is_accumulator(group: list[ElementAccess], loop: ir.Operation, body: ir.Block) -> bool:
    """Loaded and stored at one invariant place, outside inner loops and branches."""
    first = group[0]
    return (
        any(access.stored is not None for access in group)
        and any(access.stored is None for access in group)
        and all(access.same_place(first) and access.operation.block == body for access in group)
        and not any(is_inside(value, loop) for value in (first.memref, *first.indices))
    )


def _carry(loop: ir.Operation, groups: list[list[ElementAccess]]) -> None:
    """Replaces the loop by one that carries the value of each group: loaded before it, stored after it."""
    location = loop.location
    body = loop.regions[0].blocks[0]
    places = [(group[0].memref, *group[0].indices) for group in groups]
    with ir.InsertionPoint(loop), location:
        initial = [
            ir.Operation.create(
                "memref.load", results=[ir.MemRefType(place[0].type).element_type], operands=list(place)
            ).result
            for place in places
        ]
        carried = [*[result.type for result in loop.results], *[value.type for value in initial]]
        new = ir.Operation.create("scf.for", results=carried, operands=[*loop.operands, *initial], regions=1)
    types = [*[argument.type for argument in body.arguments], *[value.type for value in initial]]
    block = new.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
    arguments = list(block.arguments)
    known = len(body.arguments)
    for old, argument in zip(body.arguments, arguments[:known], strict=True):
        old.replace_all_uses_with(argument)
    for group, argument in zip(groups, arguments[known:], strict=True):
        current = argument
        for access in group:  # in program order: all stand in one block
            if access.stored is None:
                access.operation.results[0].replace_all_uses_with(current)
            else:
                current = access.operation.operands[0]
    # Read only now: a value that is stored may have been loaded from another accumulator.
    final = [[a for a in group if a.stored is not None][-1].operation.operands[0] for group in groups]
    for access in itertools.chain(*groups):
        access.operation.erase()
    yielded: list[ir.Value] = []
    for view in list(body.operations):
        operation = view.operation
        if operation.name == "scf.yield":
            yielded = list(operation.operands)
            operation.erase()
        else:
            block.append(operation)
    with ir.InsertionPoint(block), location:
        ir.Operation.create("scf.yield", operands=[*yielded, *final])
    with ir.InsertionPoint(loop), location:
        for place, result in zip(places, list(new.results)[len(yielded) :], strict=True):
            ir.Operation.create("memref.store", operands=[result, *place])
    for old, result in zip(list(loop.results), list(new.results)[: len(yielded)], strict=True):
        old.replace_all_uses_with(result)
    loop.erase()


def _guard_empty_loop(loop: ir.Operation) -> bool:
    """Makes sure that code before the loop runs only if its body does; False where that is not possible.

    A loop that may have no iterations is put under an `scf.if`: the moved load could be out of bounds without it.
    """
    if constant_trips(*list(loop.operands)[:3]):
        return True
    if len(loop.results):
        return False
    block = branch_if_less(ir.InsertionPoint(loop), loop.location, *list(loop.operands)[:2])
    block.append(loop)
    end_block(block, loop.location)
    return True


def _body(loop: ir.Operation) -> list[ir.Operation]:
    return [view.operation for view in loop.regions[0].blocks[0].operations]


def _defined_by(value: ir.Value, operations: list[ir.Operation]) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation in operations
