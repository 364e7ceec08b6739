"""The groups of feature columns: of the nest, of its profile, and of the machines."""
