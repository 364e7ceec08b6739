"""One top-level nest operation to a self-contained `@nest` function: text, parameters and argument values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from torch_mlir import ir

from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.lowering.residue import SPILL
from torch_pim.compiler_hook.lowering.views import VIEWS, defining_op, root_buffer
from torch_pim.compiler_hook.outline.memref_types import parameter_of, with_dynamic_offset
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, Parameter


@dataclass(frozen=True, slots=True)
class BuiltNest:
    """A nest as a function of its own, with what the caller passes to it."""

    code_hash: str
    canonical: str
    function: ir.Operation
    """The `func.func` itself, inside `module`."""
    module: ir.Module
    parameters: tuple[Parameter, ...]
    values: tuple[ir.Value, ...]
    """Argument values of this call, in the caller's function."""
    loaded: tuple[bool, ...]
    stored: tuple[bool, ...]
    partitionable: bool


def build_nest(op: ir.Operation) -> BuiltNest:
    """Copies a top-level `scf.parallel` or `scf.execute_region` into a function of its own; `op` is unchanged.

    Parameters come in order of first use. Constants and spilled scalars move inside. A buffer of which the nest sees
    several views is one parameter, with the views inside; otherwise the view itself is the parameter.
    """
    free = _free_values(op)
    sunk = _views_to_sink(op, free)
    prologue, parameters = _split(free, sunk)
    module = ir.Module.create(op.location)
    types = [_parameter_type(value, op, prologue) for value in parameters]
    with ir.InsertionPoint(module.body), op.location:
        function = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get("nest"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
            },
        )
    block = function.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    mapping = dict(zip(parameters, block.arguments, strict=True))
    with ir.InsertionPoint(block), op.location:
        clones = [_repeat(source, mapping) for source in prologue]
        body = op.clone().operation
        terminator = ir.Operation.create("func.return")
    # Loads belong to the iterations: a partitionable function holds nothing but producers beside its loop.
    first = body.regions[0].blocks[0].operations[0].operation
    for clone in clones:
        if clone.name == "memref.load":
            clone.move_before(first)
    for inner in walk(body):
        _remap(inner, mapping)
    partitionable = op.name == "scf.parallel"
    if not partitionable:
        for inner_view in list(body.regions[0].blocks[0].operations)[:-1]:
            inner_view.operation.move_before(terminator)
        body.erase()
    loaded, stored = _usage(function, block)
    text = str(module)
    return BuiltNest(
        code_hash=hashlib.sha256(text.encode()).hexdigest(),
        canonical=text,
        function=function,
        module=module,
        parameters=tuple(parameter_of(t) for t in types),
        values=tuple(parameters),
        loaded=loaded,
        stored=stored,
        partitionable=partitionable,
    )


def _repeat(source: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy of a producer at the current insertion point, on the function's own values."""
    clone = source.clone().operation
    _remap(clone, mapping)
    if SPILL in clone.attributes:
        del clone.attributes[SPILL]
    mapping.update(zip(source.results, clone.results, strict=True))
    return clone


def _free_values(op: ir.Operation) -> list[ir.Value]:
    """Values defined outside `op` that it uses, in order of first use."""
    inside: set[ir.Value] = set()
    free: dict[ir.Value, None] = {}
    for inner in walk(op):
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.arguments)
        for operand in inner.operands:
            if operand not in inside:
                free.setdefault(operand)
        inside.update(inner.results)
    return list(free)


def _views_to_sink(op: ir.Operation, free: list[ir.Value]) -> set[ir.Value]:
    """Views of buffers that are visible through more than one value.

    Not where one of them is a memref.reshape, which has no place in a nest, as long as the nest only reads the buffer:
    parameters that overlap do no harm then.
    """
    by_root: dict[ir.Value, list[ir.Value]] = {}
    for value in free:
        if isinstance(value.type, ir.MemRefType):
            by_root.setdefault(root_buffer(value), []).append(value)
    written = {root_buffer(store.operands[1]) for store in walk(op, "memref.store")}
    return {
        value
        for root, values in by_root.items()
        if len(values) > 1 and (root in written or not any(_is_reshaped(value) for value in values))
        for value in values
    }


def _is_reshaped(view: ir.Value) -> bool:
    op = defining_op(view)
    return op is not None and op.name in VIEWS and (op.name == "memref.reshape" or _is_reshaped(op.operands[0]))


def _split(free: list[ir.Value], sunk: set[ir.Value]) -> tuple[list[ir.Operation], list[ir.Value]]:
    """(operations to repeat inside the function, in order; values that become parameters)."""
    prologue: dict[ir.Operation, None] = {}
    parameters: dict[ir.Value, None] = {}

    def visit(value: ir.Value) -> None:
        op = defining_op(value)
        inside = op is not None and (
            op.name == "arith.constant"
            or SPILL in op.attributes
            or (op.name in VIEWS and (value in sunk or _feeds_sunk(value)))
        )
        if op is None or not inside:
            parameters.setdefault(value)
            return
        for operand in op.operands:
            if op.name in VIEWS and isinstance(operand.type, ir.MemRefType):
                chain.add(operand)
            visit(operand)
        prologue.setdefault(op)

    chain: set[ir.Value] = set()

    def _feeds_sunk(value: ir.Value) -> bool:
        return value in chain

    for value in free:
        visit(value)
    return list(prologue), list(parameters)


def _parameter_type(value: ir.Value, op: ir.Operation, prologue: list[ir.Operation]) -> ir.Type:
    """The value's type, with a dynamic offset where the nest only loads and stores through it."""
    if not isinstance(value.type, ir.MemRefType):
        return value.type
    parameter = parameter_of(value.type)
    assert isinstance(parameter, MemRefParameter)
    whole = not isinstance(value.type.layout, ir.StridedLayoutAttr)
    if whole or parameter.offset is None or any(value in list(source.operands) for source in prologue):
        return value.type
    for use in value.uses:
        user = use.owner.operation
        if user.name not in ("memref.load", "memref.store") and _is_within(user, op):
            return value.type
    return with_dynamic_offset(value.type)


def _is_within(user: ir.Operation, op: ir.Operation) -> bool:
    current: ir.Operation | None = user
    while current is not None:
        if current == op:
            return True
        parent = current.parent
        current = None if parent is None else parent.operation
    return False


def _remap(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    for position, operand in enumerate(op.operands):
        replacement = mapping.get(operand)
        if replacement is not None:
            op.operands[position] = replacement


def _usage(function: ir.Operation, block: ir.Block) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Per parameter: is it loaded from, is it stored to."""
    loaded: set[ir.Value] = set()
    stored: set[ir.Value] = set()
    for op in walk(function):
        if op.name == "memref.load":
            loaded.add(root_buffer(op.operands[0]))
        elif op.name == "memref.store":
            stored.add(root_buffer(op.operands[1]))
    arguments = list(block.arguments)
    return tuple(a in loaded for a in arguments), tuple(a in stored for a in arguments)
