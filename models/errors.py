"""Errors of the models room. Each names the thing, what was expected, and the mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ModelError(Exception):
    """Base of all errors about bundles, models and policies."""


class ModelMissing(ModelError, FileNotFoundError):
    """A bundle, or a file that its manifest lists, is not there."""

    def __str__(self) -> str:
        return str(self.args[0])


class SchemaMismatch(ModelError, ValueError):
    """The columns of a model do not fit the columns that the compiler computes."""


class ChecksumMismatch(ModelError, ValueError):
    """A file of a bundle was altered after the bundle was written."""


class UnsupportedFormat(ModelError, ValueError):
    """A bundle or model file is of a format, kind or content that this version cannot evaluate."""


class DeviceMismatch(ModelError, ValueError):
    """A model was asked about a machine outside the range of those it was trained on."""


class PolicyError(ModelError, ValueError):
    """An unknown policy name, an ill-typed option, or a name that two providers claim."""


class PlacementError(ModelError, ValueError):
    """A placement problem, its times or its sides are inconsistent."""


class ModelWarning(UserWarning):
    """A learned model cannot be used, and the documented fallback decides instead."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the closest known name, or the list of all known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(names) or 'none'}."
