"""Which ATen operators are taken apart before the import: by Torch-MLIR's forms, or by ours where they do better."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from torch_pim.compiler_hook.frontend import normalisations
from torch_pim.compiler_hook.frontend.activations import gelu
from torch_pim.compiler_hook.frontend.attention import attention, log_softmax, safe_softmax, softmax
from torch_pim.compiler_hook.frontend.embedding_bags import EMBEDDING_BAGS
from torch_pim.compiler_hook.frontend.half_reductions import HALF_REDUCTIONS
from torch_pim.compiler_hook.frontend.operator_gaps import GAPS
from torch_pim.compiler_hook.frontend.transformer_layer import transformer_encoder_layer

aten = torch.ops.aten
Decomposition = Callable[..., Any]

_OWN: dict[Any, Decomposition] = {
    aten.var.correction: normalisations.var_correction,
    aten.std.correction: normalisations.std_correction,
    aten.var_mean.correction: normalisations.var_mean_correction,
    aten.native_layer_norm.default: normalisations.native_layer_norm,
    aten._native_batch_norm_legit_no_training.default: normalisations.native_batch_norm_no_training,
    aten.native_group_norm.default: normalisations.native_group_norm,
    aten._softmax.default: softmax,
    aten._log_softmax.default: log_softmax,
    aten._safe_softmax.default: safe_softmax,
    aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
    aten.scaled_dot_product_attention.default: attention,
    aten.gelu.default: gelu,
}


@functools.cache
def decomposition_table() -> dict[Any, Decomposition]:
    """Operator overload -> decomposition, for torch.export and AOTAutograd alike. Do not modify."""
    table = dict(get_decomposition_table())
    for forms in (GAPS, EMBEDDING_BAGS, HALF_REDUCTIONS, _OWN):
        for overload, form in forms.items():
            table[overload] = _or_stock(form, table[overload]) if overload in table else form
    return table


def _or_stock(form: Decomposition, stock: Decomposition) -> Decomposition:
    """Our form, and the one that it replaces where ours returns NotImplemented."""

    @functools.wraps(form)
    def decomposition(*arguments: Any, **keywords: Any) -> Any:
        made = form(*arguments, **keywords)
        return stock(*arguments, **keywords) if made is NotImplemented else made

    return decomposition
