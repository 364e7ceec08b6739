"""The one error of extraction."""

from __future__ import annotations


class ExtractionError(ValueError):
    """A nest function is not in the canonical form that loop nests are read from; names the operation and the mend."""
