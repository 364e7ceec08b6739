"""Torch-PIM: decides, for every parallel loop nest of a PyTorch model, host or processing-in-memory."""

__version__ = "0.1.0"
