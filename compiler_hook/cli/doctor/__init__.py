"""`torch-pim doctor`: what this machine and this installation offer, and what to do about what is missing."""
