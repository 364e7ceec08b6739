"""Sub-commands of `torch-pim` that need workloads, labels or emulated times; thin over the rest of this room."""
