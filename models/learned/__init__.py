"""Learned models at compile time: their inputs, evaluation, bundles and guards. Nothing here trains."""
