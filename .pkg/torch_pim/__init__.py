"""Torch-PIM: decides, for every parallel loop nest of a PyTorch model, host or processing-in-memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_pim.compiler_hook.api import compile, compile_linalg

__version__ = "0.1.0"
__all__ = ["__version__", "compile", "compile_linalg"]


def __getattr__(name: str) -> Any:
    # Importing the package loads no torch; its two entry points do.
    if name in ("compile", "compile_linalg"):
        from torch_pim.compiler_hook import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
