"""From a specialised program to a placement problem, and from a placement back to annotated IR."""
