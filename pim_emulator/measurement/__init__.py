"""What one nest does to memory: traced once, kept on disk, used for every machine."""
