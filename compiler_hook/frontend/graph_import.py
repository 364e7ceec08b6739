"""FX graph to the torch dialect and on to linalg-on-tensors. The only importer of torch_mlir's FX importer."""

from __future__ import annotations

import threading

import torch
from torch.fx import Graph, Node
from torch_mlir import ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_importer import FxImporter

from torch_pim.compiler_hook.errors import FrontendError, LoweringError
from torch_pim.compiler_hook.frontend.graph_repairs import repair
from torch_pim.compiler_hook.frontend.narrow_integers import widen_narrow_integers
from torch_pim.compiler_hook.lowering import torch_to_linalg
from torch_pim.compiler_hook.lowering.passes import collected_errors, first_line

ENTRY = "main"
ORIGIN_PREFIX = "aten."
_IMPORT_LOCK = threading.Lock()


def new_context() -> ir.Context:
    context = ir.Context()
    torch_dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    return context


def graph_to_linalg(graph: Graph, name: str = ENTRY) -> ir.Module:
    """Linalg-on-tensors module with one function `name`; every placeholder is an argument (weights too).

    The graph must be functional, decomposed, and return a tuple of tensors. Raises FrontendError with the operator
    that failed where it is known.
    """
    repair(graph)
    widen_narrow_integers(graph)
    _mark_origins(graph)
    importer = FxImporter(context=new_context())
    with collected_errors(importer.module.context) as errors:
        try:
            with _IMPORT_LOCK:
                importer.import_stateless_graph(graph, func_name=name)
        except Exception as error:  # the importer raises many types
            reason = first_line(errors, error)
            raise FrontendError(f"cannot import graph {name!r}: {type(error).__name__}: {reason}") from error
    module = importer.module
    try:
        torch_to_linalg(module)
    except LoweringError as error:
        raise FrontendError(f"graph {name!r} does not reach linalg: {error}") from error
    return module


def operator_name(node: Node) -> str:
    """Qualified overload, e.g. `aten.mm.default`; the plain target for anything else."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    return getattr(target, "__name__", str(target))


def _mark_origins(graph: Graph) -> None:
    """Locations carry `operator@node` through all passes, in place of a file name."""
    for node in graph.nodes:
        if node.op == "call_function":
            node.meta["stack_trace"] = f'  File "{operator_name(node)}@{node.name}", line 1, in graph'
