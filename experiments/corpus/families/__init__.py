"""Operator families of the corpus, one module per kind of kernel."""
