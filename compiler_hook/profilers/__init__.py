"""Profilers that measure nests on the machine this process runs on."""
