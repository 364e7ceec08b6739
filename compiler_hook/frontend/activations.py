"""Activation functions whose constants Torch-MLIR rounds: its tanh-GELU has 0.797724 for sqrt(2/pi) = 0.7978846."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_pim.compiler_hook.frontend.normalisations import working


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Hendrycks and Gimpel, 2016; the tanh form with sqrt(2/pi) to full precision."""
    work = working(x)
    if approximate == "tanh":
        inner = math.sqrt(2.0 / math.pi) * (work + 0.044715 * work * work * work)
        out = 0.5 * work * (1.0 + torch.tanh(inner))
    else:
        out = 0.5 * work * (1.0 + torch.erf(work * math.sqrt(0.5)))
    return out.to(x.dtype)
