"""What a loop nest looks like: records, extraction from MLIR, host counters, machine specs, the schema."""
