"""Set-associative caches, DRAM rows and vaults under a trace of addresses."""
