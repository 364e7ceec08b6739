"""Workloads, corpus, labels, training, evaluation, comparison."""
