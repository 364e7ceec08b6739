"""What a sub-command of `torch-pim` is, ours or a plug-in's."""

from __future__ import annotations

import argparse
from typing import Protocol, runtime_checkable


@runtime_checkable
class Command(Protocol):
    """One sub-command, named by an entry point in the group `torch_pim.commands`.

    `torch-pim --help` imports the module of every command, so that module imports nothing heavy: torch and the
    training stack belong inside `run`. `--debug` belongs to the root and cannot be redefined.
    """

    @property
    def name(self) -> str:
        """The word typed after `torch-pim`; equal to the name of the entry point."""
        ...

    @property
    def help(self) -> str:
        """One line for the list of commands, without a full stop."""
        ...

    @property
    def description(self) -> str:
        """What it does and writes, then examples that can be pasted; shown as it is by `--help`."""
        ...

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Adds the command's arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Does the work and returns the exit code; raises an error of Torch-PIM where the user must mend something."""
        ...
