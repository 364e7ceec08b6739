"""The entry of extraction: from the text or operation of a nest function to its LoopNest."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from torch_mlir import ir

from torch_pim.features.extent import Polynomial
from torch_pim.features.extraction.errors import ExtractionError
from torch_pim.features.extraction.index_form import IndexForm
from torch_pim.features.extraction.kinds import nest_kind
from torch_pim.features.extraction.memref_layout import element_type, parameter_sizes, parameter_strides
from torch_pim.features.extraction.views import View
from torch_pim.features.extraction.walk import NestWalk, Place, is_loop_invariant
from torch_pim.features.nest import LoopNest

FUNCTION_NAME = "nest"

NestSource: TypeAlias = "str | ir.Module | ir.Operation | ir.OpView"


def extract_loop_nest(source: NestSource, name: str, code_hash: str) -> LoopNest:
    """Record of the canonical nest function: the text of a module that holds `@nest`, the module, or the function.
    Text is parsed in the current MLIR context, where there is one (making a context costs more than the extraction).

    Symbols of dynamic shapes are those of NestFunction: `a<k>.d<i>`, `a<k>.s<i>` and `a<k>` for parameter k. Loops
    whose trip count cannot be written with them are marked `estimated`. Raises ExtractionError for text that does
    not parse and for operations outside the canonical form.
    """
    if isinstance(source, str):
        with _context():
            try:
                module = ir.Module.parse(source)
            except ir.MLIRError as error:
                raise ExtractionError(f"nest {name!r} is not valid MLIR: {error}") from error
            return extract_loop_nest(module, name, code_hash)
    function = _function(source, name)
    body = function.regions[0].blocks[0]
    walk = NestWalk()
    try:
        _bind_parameters(walk, body)
        walk.block(body.operations, Place())
        partitionable, rank = _parallel_range(body)
        accesses, operations = walk.recorder.accesses(), walk.recorder.operations()
        kind = nest_kind(accesses, operations, lambda: _stores_only_invariants(function))
    except ExtractionError as error:
        raise ExtractionError(f"nest {name!r}: {error}") from error
    return LoopNest(
        name=name,
        loops=tuple(walk.recorder.loops),
        parallel_rank=rank,
        accesses=accesses,
        operations=operations,
        buffers=walk.recorder.buffers(),
        kind=kind,
        partitionable=partitionable,
        code_hash=code_hash,
    )


def _context() -> AbstractContextManager[object]:
    """The current MLIR context, or a new one."""
    return nullcontext() if ir.Context.current is not None else _new_context()


def _new_context() -> AbstractContextManager[object]:
    context: AbstractContextManager[object] = ir.Context()
    return context


def _function(source: ir.Module | ir.Operation | ir.OpView, name: str) -> ir.Operation:
    op = source.operation
    if op.name == "func.func":
        return op
    functions = [inner.operation for inner in op.regions[0].blocks[0].operations if inner.operation.name == "func.func"]
    for function in functions:
        if ir.StringAttr(function.attributes["sym_name"]).value == FUNCTION_NAME:
            return function
    found = ", ".join(str(f.attributes["sym_name"]) for f in functions) or "none"
    raise ExtractionError(f"nest {name!r}: no function @{FUNCTION_NAME} in the module; expected one, found {found}")


def _bind_parameters(walk: NestWalk, body: ir.Block) -> None:
    for position, argument in enumerate(body.arguments):
        if isinstance(argument.type, ir.MemRefType):
            kind = ir.MemRefType(argument.type)
            name, sizes = element_type(kind.element_type), parameter_sizes(kind, position)
            buffer = walk.recorder.add_buffer(name, sizes)
            view = View(buffer, name, tuple(map(IndexForm, sizes)), parameter_strides(kind, position), IndexForm(0))
            walk.values.set_view(argument, view)
        elif isinstance(argument.type, ir.IndexType):
            walk.values.set_form(argument, IndexForm(Polynomial.symbol(f"a{position}")))


def _parallel_range(body: ir.Block) -> tuple[bool, int]:
    """(partitionable, number of loops of the parallel range): one scf.parallel without results, and only producers."""
    rank = 0
    for inner in body.operations:
        op = inner.operation
        if op.name == "scf.parallel" and not rank and not len(op.results):
            rank = len(op.regions[0].blocks[0].arguments)
        elif len(op.regions) or op.name in _EFFECTS:
            return False, 0
    return rank > 0, rank


_EFFECTS = frozenset({"memref.load", "memref.store", "memref.copy", "memref.atomic_rmw", "func.call"})


def _stores_only_invariants(function: ir.Operation) -> bool:
    varying = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.store" and not is_loop_invariant(op.operands[0]):
            varying.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return not varying
