"""Where PyTorch meets the placement decision: frontend, lowering, outlining, code generation, runtime, CLI."""
