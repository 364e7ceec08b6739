"""From what a user typed to a model: a workload's name, `package.module:factory`, or the path of a `.pt2` file."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.experiments.workloads.options import OptionValue
from torch_pim.experiments.workloads.registry import get_workload

MODEL_HELP = (
    "name of a workload, 'package.module:factory' (called without arguments, returns (module, arguments)), or a "
    "'.pt2' file of torch.export. The last two execute code: name only what you trust"
)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model ready for lowering. Exactly one of `module` and `program` is set."""

    name: str
    module: nn.Module | None
    arguments: tuple[Any, ...]
    program: torch.export.ExportedProgram | None = None


def resolve_model(
    reference: str, options: Mapping[str, OptionValue] | None = None, *, fake: bool = False, seed: int = 0
) -> ResolvedModel:
    """Finds and builds the model; `options`, `fake` and `seed` apply to workloads only. Raises OptionError."""
    given = options or {}
    if reference.endswith(".pt2"):
        _no_options(reference, given)
        return ResolvedModel(Path(reference).stem, None, (), _load_program(Path(reference)))
    if ":" in reference:
        _no_options(reference, given)
        module, arguments = _call_factory(reference)
        return ResolvedModel(reference, module.eval(), arguments)
    module, arguments = get_workload(reference).build(given, fake=fake, seed=seed)
    return ResolvedModel(reference, module, arguments)


def _no_options(reference: str, options: Mapping[str, OptionValue]) -> None:
    if options:
        raise OptionError(f"{reference!r} takes no options ({', '.join(sorted(options))}): only workloads have options")


def _load_program(path: Path) -> torch.export.ExportedProgram:
    if not path.is_file():
        raise OptionError(f"no file {str(path)!r}: expected a program written by torch.export.save")
    try:
        return torch.export.load(path)
    except Exception as error:
        raise OptionError(f"{str(path)!r} is not a program written by torch.export.save: {error}") from error


@contextlib.contextmanager
def _working_directory_importable() -> Iterator[None]:
    """A console script does not import from the working directory; a user's own module usually lies there."""
    directory = os.getcwd()
    sys.path.append(directory)
    try:
        yield
    finally:
        sys.path.remove(directory)


def _call_factory(reference: str) -> tuple[nn.Module, tuple[Any, ...]]:
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise OptionError(f"model {reference!r}: expected 'package.module:factory'")
    with _working_directory_importable():
        try:
            found: Any = importlib.import_module(module_name)
        except ImportError as error:
            raise OptionError(f"cannot import {module_name!r} of model {reference!r}: {error}") from error
        factory = getattr(found, attribute, None)
        if not callable(factory):
            raise OptionError(f"model {reference!r}: module {module_name!r} has no callable {attribute!r}")
        try:
            result = factory()
        except Exception as error:  # a user's own code raises what it likes
            raise OptionError(
                f"model {reference!r}: its factory, which is called without arguments, raised "
                f"{type(error).__name__}: {error}"
            ) from error
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], nn.Module)):
        raise OptionError(f"model {reference!r} returned {type(result).__name__}, expected (nn.Module, arguments)")
    module, arguments = result
    if not isinstance(arguments, tuple):
        raise OptionError(
            f"model {reference!r} returned arguments of type {type(arguments).__name__}, expected a tuple"
        )
    return module, arguments
