"""What Torch-PIM does, shown on real models: modelled plans at real shapes, and a small model that really runs."""
