"""Arguments that choose machines, policy and model bundle, with the compiler's own defaults."""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_pim.compiler_hook.options import CompileOptions

DEFAULTS = CompileOptions()


def add_machines(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """`--device` and `--host`; with `several`, comma-separated lists, which give tuples."""
    what = "presets or TOML files, comma-separated" if several else "a preset or a TOML file"
    for name, default in (("device", DEFAULTS.device), ("host", DEFAULTS.host)):
        parser.add_argument(
            f"--{name}",
            type=comma_separated if several else str,
            default=(default,) if several else default,
            metavar=f"{name.upper()}[,...]" if several else name.upper(),
            help=f"{what} (default: {default})",
        )


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """`--bundle` and `--on-model-error`, for the learned policies."""
    parser.add_argument("--bundle", type=Path, metavar="FOLDER", help="learned model (default: the shipped one)")
    parser.add_argument(
        "--on-model-error",
        choices=("fallback", "error"),
        default=DEFAULTS.on_model_error,
        help="whether the cost model decides if the learned model cannot be used, or the command stops "
        "(default: %(default)s)",
    )


def comma_separated(text: str) -> tuple[str, ...]:
    """Distinct names in the order given."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names separated by commas")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise argparse.ArgumentTypeError(f"{text!r}: {repeated[0]!r} stands twice")
    return tuple(names)
