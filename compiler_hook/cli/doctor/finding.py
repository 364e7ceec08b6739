"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "problem"]
"""`note`: works, with less; `problem`: compiling a model fails until it is mended."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and the mend where there is something to mend."""

    section: str
    name: str
    state: State
    value: str
    advice: str | None = None
