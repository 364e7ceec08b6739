"""The `compare` command: modelled plan times of one model under several policies and machines."""
