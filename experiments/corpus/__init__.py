"""Versioned corpora of loop nests to label, built from operator families and small networks."""
