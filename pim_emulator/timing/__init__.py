"""Times of measured nests on hosts and PIM devices, by closed equations."""
