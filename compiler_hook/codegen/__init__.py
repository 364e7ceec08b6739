"""Code generation: from the canonical text of nests to compiled functions over sub-ranges of their iterations."""
