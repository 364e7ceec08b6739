"""What follows from a concrete LoopNest alone: work, footprint, reuse, reductions, contractions, vectorisation."""
