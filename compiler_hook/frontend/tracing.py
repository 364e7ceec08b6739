"""The state of PyTorch under which graphs are traced: no fused kernels that only eager knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextmanager
def decomposable_tracing() -> Iterator[None]:
    """Attention in its math form, recurrent layers without oneDNN, no transformer fast path; restored on exit."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
