"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; it takes the place of `path` when the block ends, and goes away if the block fails.

    The parent folder is made. Permissions are those of any new file of the user.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.with_name(f".{target.name}.{os.getpid()}.writing")
    try:
        yield work
        os.replace(work, target)
    finally:
        work.unlink(missing_ok=True)
