"""From linalg-on-tensors to canonical parallel loop nests on buffers."""

from torch_pim.compiler_hook.lowering.pipeline import LOWERING_VERSION, linalg_to_loops, torch_to_linalg

__all__ = ["LOWERING_VERSION", "linalg_to_loops", "torch_to_linalg"]
