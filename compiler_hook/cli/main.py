"""The root of the `torch-pim` command: finds a sub-command, runs it, and puts errors in one line."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

import torch_pim
from torch_pim.compiler_hook.cli.command import Command
from torch_pim.compiler_hook.errors import RegistryError, TorchPimError
from torch_pim.compiler_hook.registry import commands

EXPECTED_ERROR = 2
"""Exit code of an error that the user can mend; the same as argparse's for wrong usage."""
INTERRUPTED = 128 + signal.SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `torch-pim` with the given arguments (default: the process's own) and returns its exit code.

    Errors that are raised on purpose become one line on stderr and exit code 2; `--debug` shows their traceback.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        code = _dispatch([argument for argument in given if argument != "--debug"])
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader went away (`| head`): what is left to flush at exit has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        print("torch-pim: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if debug or not _is_expected(error):
            raise
        print(f"torch-pim: error: {_message(error)}", file=sys.stderr)
        return EXPECTED_ERROR


def _dispatch(arguments: Sequence[str]) -> int:
    root = _root_parser()
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_root_help(root), end="")
        return 0 if arguments else EXPECTED_ERROR
    chosen = root.parse_args(arguments)
    command = _load(chosen.command)
    parser = argparse.ArgumentParser(
        prog=f"torch-pim {command.name}",
        description=command.description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return command.run(parser.parse_args(chosen.arguments))


def _root_parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="torch-pim",
        description="Decides, nest by nest, what of a PyTorch model runs on the host and what in memory.",
        usage="torch-pim [-h] [--version] [--debug] COMMAND ...",
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"torch-pim {torch_pim.__version__}")
    root.add_argument("--debug", action="store_true", help="show the traceback of an error")
    root.add_argument("command", metavar="COMMAND", help="one of the commands below")
    root.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return root


def _root_help(root: argparse.ArgumentParser) -> str:
    names = commands.names()
    width = max(map(len, names))
    lines = [f"  {name:<{width}}  {_help_line(name)}" for name in names]
    return "\n".join(
        [root.format_help(), "commands:", *lines, "", "'torch-pim COMMAND --help' shows the options of one.", ""]
    )


def _load(name: str) -> Command:
    command = commands.load(name)
    if not isinstance(command, Command) or command.name != name:
        raise RegistryError(
            f"command {name!r} ({commands.provider(name)}) is no command of that name: expected an object with "
            f"name={name!r}, help, description, configure and run"
        )
    return command


def _help_line(name: str) -> str:
    # One broken plug-in must not take the help of all others away.
    try:
        return _load(name).help
    except TorchPimError as error:
        return f"(unavailable: {' '.join(_message(error).split())})"


def _is_expected(error: Exception) -> bool:
    """True for classes defined in any room of ours or derived from one, and for files that are not as expected."""
    ours = any(kind.__module__.startswith("torch_pim.") for kind in type(error).__mro__)
    return ours or isinstance(error, OSError)


def _message(error: BaseException) -> str:
    # str() of a KeyError is the repr of its message.
    text = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else str(error)
    return str(text).strip() or type(error).__name__
