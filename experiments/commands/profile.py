"""The `profile` command: one host profile per unique nest of a model, measured or simulated."""
