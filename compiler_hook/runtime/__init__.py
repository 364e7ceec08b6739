"""Carries out placed programs: host nests on a thread pool, PIM nests on a device, in program order."""
