"""The `torch.compile` backend: Dynamo graph -> AOTAutograd -> placed loop nests, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition  # type: ignore[import-untyped]
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from torch_pim.compiler_hook.frontend.attention import attention
from torch_pim.compiler_hook.frontend.decompositions import decomposition_table
from torch_pim.compiler_hook.frontend.tracing import decomposable_tracing
from torch_pim.compiler_hook.graph_compiler import Session, compile_graph
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.target import resolve

Backend = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]


def torch_pim(module: GraphModule, inputs: Sequence[Any], options: Mapping[str, Any] | None = None) -> Any:
    """Backend of `torch.compile(model, backend="torch_pim", options={...})`; see CompileOptions for the keys."""
    return compile_dynamo_graph(module, inputs, new_session(CompileOptions.from_mapping(options or {})))


def new_session(options: CompileOptions) -> Session:
    return Session(resolve(options), [], [])


def compile_dynamo_graph(module: GraphModule, inputs: Sequence[Any], session: Session) -> Any:
    """Compiles one Dynamo graph; what was compiled is recorded in the session."""
    _use_own_attention(module)
    weights = [position for position, value in enumerate(inputs) if _is_weight(value)]
    weight_names = {f"{prefix}{position + first}{suffix}" for position in weights for prefix, first, suffix in _NAMES}

    def compiler(graph: GraphModule, _example: Sequence[Any]) -> Any:
        return make_boxed_func(compile_graph(graph, session, weight_names))

    compile_graphs = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        # Views of weights are made again in the backward pass instead of being stored by the forward pass.
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decomposition_table(),
    )
    with decomposable_tracing():
        return compile_graphs(module, inputs)


_NAMES = (("primals_", 1, ""), ("arg", 0, "_1"))
"""How AOTAutograd names placeholder k: in training graphs, in inference graphs."""


def _is_weight(value: Any) -> bool:
    """Parameters and buffers of the model: Dynamo marks them, as their addresses never change."""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


def _use_own_attention(module: GraphModule) -> None:
    stock = (F.scaled_dot_product_attention, torch._C._nn.scaled_dot_product_attention)
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target in stock:
            dropout = node.kwargs.get("dropout_p", node.args[4] if len(node.args) > 4 else 0.0)
            if dropout == 0.0:
                node.target = attention
    module.recompile()
