"""What the machines would do: traces, caches, DRAM, host and device timing, functional execution."""
