"""From a corpus to labelled nests: lowering, deduplication, emulated times, and the file that holds them."""
