"""The `torch-pim` command: a thin shell over the rooms."""
