"""From PyTorch (modules, exported programs, FX graphs) or MLIR text to linalg-on-tensors."""
