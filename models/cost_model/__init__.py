"""Closed-form times of a nest on host and device: no trace, no emulator."""
