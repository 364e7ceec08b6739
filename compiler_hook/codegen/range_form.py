"""From the canonical text of a nest to a function that runs iterations [lo, hi) of its parallel range."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.interchange import make_accesses_contiguous
from torch_pim.compiler_hook.codegen.pipelines import parse_module
from torch_pim.compiler_hook.codegen.rewriting import (
    IndexBuilder,
    branch_if_less,
    constant_trips,
    end_block,
    move_body,
    new_loop,
    parallel_bounds,
)
from torch_pim.compiler_hook.errors import CodegenError
from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.outline.nest_function import NestFunction


def range_function_name(position: int) -> str:
    """Symbol of the range function of the nest at this position in its module."""
    return f"nest_{position}"


def range_functions(module: ir.Module) -> list[ir.Operation]:
    """The range functions of a module, in order, before or after lowering to the LLVM dialect."""
    found: dict[str, ir.Operation] = {}
    for view in module.body.operations:
        operation = view.operation
        if operation.name in ("func.func", "llvm.func"):
            found[ir.StringAttr(operation.attributes["sym_name"]).value] = operation
    names = [range_function_name(i) for i in range(len(found))]
    return [found[name] for name in names if name in found]


def to_range_form(module: ir.Module, function: NestFunction, position: int) -> None:
    """Appends `nest_<position>(%lo: index, %hi: index, params...)` to the module; raises CodegenError.

    All parallel dimensions but the last form one loop whose counter is split into them once per iteration; the last
    one is an inner loop clipped to [lo, hi). A nest that is not partitionable keeps its body, run once for (0, 1).
    """
    parsed = parse_module(function.canonical, module.context)
    nest = _single_function(parsed)
    location = nest.location
    index = ir.IndexType.get(module.context)
    inputs = list(ir.FunctionType(ir.TypeAttr(nest.attributes["function_type"]).value).inputs)
    types = [index, index, *inputs]
    with ir.InsertionPoint(module.body), location:
        result = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get(range_function_name(position)),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
            },
        )
    entry = result.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
    source = nest.regions[0].blocks[0]
    low, high, *parameters = entry.arguments
    for old, new in zip(source.arguments, parameters, strict=True):
        old.replace_all_uses_with(new)
    if function.loop_nest.partitionable:
        move_body(source, entry, "func.return")
        innermost, trips = _partition(entry, low, high)
    else:
        body = branch_if_less(ir.InsertionPoint(entry), location, low, high)
        move_body(source, body, "func.return")
        end_block(body, location)
    for loop in reversed(walk(result, "scf.parallel")):
        _sequentialise(loop)
    if function.loop_nest.partitionable:
        make_accesses_contiguous(innermost, trips)
    end_block(entry, location, "func.return")


def _single_function(parsed: ir.Module) -> ir.Operation:
    operations = [view.operation for view in parsed.body.operations]
    if [op.name for op in operations] != ["func.func"]:
        raise CodegenError(f"expected one function @nest, found {', '.join(op.name for op in operations) or 'nothing'}")
    nest = operations[0]
    if len(nest.regions[0].blocks) != 1:
        raise CodegenError(f"expected @nest to have one block, found {len(nest.regions[0].blocks)}")
    return nest


def _partition(entry: ir.Block, low: ir.Value, high: ir.Value) -> tuple[ir.Operation, int | None]:
    """Replaces the top-level scf.parallel; returns the innermost new loop, and its row length if that is constant."""
    outermost = [view.operation for view in entry.operations]
    acting = [op for op in outermost if len(op.regions) or op.name == "memref.store"]
    if [op.name for op in acting] != ["scf.parallel"]:
        found = ", ".join(op.name for op in acting) or "none"
        raise CodegenError(f"expected one top-level scf.parallel beside constants and views, found {found}")
    loop = acting[0]
    location = loop.location
    bounds = parallel_bounds(loop)
    body = loop.regions[0].blocks[0]
    point = ir.InsertionPoint(loop)
    outside = IndexBuilder(point, location)
    one = outside.constant(1)
    if len(bounds) == 1:
        loop_over_last, inner = new_loop(point, location, low, high, one)
        inside = IndexBuilder(ir.InsertionPoint(inner), location)
        lower, _, step = bounds[0]
        values = [inside.induction(inner.arguments[0], lower, step)]
    else:
        trips = [outside.trip_count(*bound) for bound in bounds]
        # An empty dimension makes the whole range empty; 1 only keeps the divisions defined.
        divisors = [outside.maximum(one, trip) for trip in trips]
        width = divisors[-1]
        _, rows = new_loop(point, location, outside.divide(low, width), outside.divide_up(high, width), one)
        per_row = IndexBuilder(ir.InsertionPoint(rows), location)
        row = rows.arguments[0]
        start = per_row.multiply(row, width)
        first = per_row.maximum(per_row.constant(0), per_row.subtract(low, start))
        last = per_row.minimum(width, per_row.subtract(high, start))
        values = []
        for dimension in reversed(range(len(bounds) - 1)):
            lower, _, step = bounds[dimension]
            counter = per_row.remainder(row, divisors[dimension]) if dimension else row
            values.insert(0, per_row.induction(counter, lower, step))
            row = per_row.divide(row, divisors[dimension]) if dimension else row
        loop_over_last, inner = new_loop(ir.InsertionPoint(rows), location, first, last, one)
        inside = IndexBuilder(ir.InsertionPoint(inner), location)
        lower, _, step = bounds[-1]
        values.append(inside.induction(inner.arguments[0], lower, step))
        end_block(rows, location)
    _replace_body(body, values, inner, location)
    loop.erase()
    return loop_over_last, constant_trips(*bounds[-1])


def _sequentialise(loop: ir.Operation) -> None:
    """Replaces an inner scf.parallel by nested scf.for loops in the same order."""
    location = loop.location
    point = ir.InsertionPoint(loop)
    body = loop.regions[0].blocks[0]
    values: list[ir.Value] = []
    blocks: list[ir.Block] = []
    for lower, upper, step in parallel_bounds(loop):
        _, block = new_loop(point, location, lower, upper, step)
        values.append(block.arguments[0])
        blocks.append(block)
        point = ir.InsertionPoint(block)
    _replace_body(body, values, blocks[-1], location)
    for block in reversed(blocks[:-1]):
        end_block(block, location)
    loop.erase()


def _replace_body(body: ir.Block, values: Sequence[ir.Value], target: ir.Block, location: ir.Location) -> None:
    for argument, value in zip(body.arguments, values, strict=True):
        argument.replace_all_uses_with(value)
    move_body(body, target, "scf.reduce")
    end_block(target, location)
