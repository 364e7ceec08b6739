"""From the canonical function of one nest (MLIR) to its LoopNest."""

from torch_pim.features.extraction.errors import ExtractionError
from torch_pim.features.extraction.extract import extract_loop_nest

__all__ = ["ExtractionError", "extract_loop_nest"]
