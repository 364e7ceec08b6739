"""The `plan` command: what of a model would run where, and why."""
