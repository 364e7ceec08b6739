"""The state of PyTorch under which graphs are traced: no fused kernels that only eager knows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextmanager
def decomposable_tracing() -> Iterator[None]:
    """Attention in its math form, recurrent layers without oneDNN, no transformer fast path; restored on exit."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    # Not `mkldnn.flags`, which also sets the TF32 flag and so warns on every build without Intel GPUs.
    one_dnn, *_ = torch.backends.mkldnn.set_flags(_enabled=False, _fp32_precision=None)
    try:
        with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
            # PyTorch's own tree copying trips over its own deprecation; nobody who calls us can mend it.
            warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated", category=FutureWarning)
            yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=one_dnn, _fp32_precision=None)
        torch.backends.mha.set_fastpath_enabled(fast_path)
