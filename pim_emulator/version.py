"""Version of everything that measurements and times depend on."""

EMULATOR_VERSION = "1.0"
"""Raised whenever a trace, a count or an equation changes: it is part of every cache key and label key."""
