"""From what a user typed to a lowered program: workload, factory, `.pt2` file or `.mlir` file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch_pim.compiler_hook.errors import FrontendError, LoweringError, OptionError
from torch_pim.compiler_hook.frontend.mlir_text import parse_linalg
from torch_pim.compiler_hook.lowered import LoweredProgram, lower_model, lower_module
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, Parameter
from torch_pim.experiments.workloads import get_workload, resolve_model
from torch_pim.experiments.workloads.options import OptionValue, apply_options
from torch_pim.models.errors import did_you_mean

FUNCTION_OPTION = "function"
"""The one option of an `.mlir` file: which of its public functions is meant."""

_UNREAD = {"prefill": "context", "decode": "sequence"}
"""Phase of a model -> the option that says nothing about it."""


@dataclass(frozen=True, slots=True)
class LoweredModel:
    """A static program and what it was made from."""

    name: str
    options: Mapping[str, OptionValue]
    """Every option of a workload with the value in force; of an `.mlir` file the function; else empty."""
    lowered: LoweredProgram

    @property
    def title(self) -> str:
        """E.g. `llama-7b (decode, context 2048, layers 32, f32, batch 1)`."""
        if not self.options:
            return self.name
        unread = _UNREAD.get(str(self.options.get("phase")))
        shown = [
            f"{name.replace('_', ' ')} {value}" if isinstance(value, int) else value
            for name, value in self.options.items()
            if name != unread
        ]
        return f"{self.name} ({', '.join(shown)})"

    @property
    def element_types(self) -> tuple[str, ...]:
        """Types of weights and inputs, sorted."""
        return tuple(sorted({parameter.element_type for parameter in self.lowered.program.parameters}))

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """(type and shape, how many) of the arguments that are no weights, e.g. `("f32[1,32,2048,128]", 64)`."""
        parameters = enumerate(self.lowered.program.parameters)
        return tuple(Counter(_shape(p) for position, p in parameters if position not in self.lowered.weights).items())

    def to_json(self) -> dict[str, Any]:
        """Plain values; shapes as MLIR element type and sizes."""
        return {
            "name": self.name,
            "title": self.title,
            "options": dict(self.options),
            "element_types": list(self.element_types),
            "inputs": [{"type": shape, "count": count} for shape, count in self.inputs],
        }


def describe_inputs(model: LoweredModel) -> str:
    """E.g. `i64[1,1] x 2, f32[1,32,2048,128] x 64`; `nothing` for a model without inputs."""
    return ", ".join(shape if count == 1 else f"{shape} x {count}" for shape, count in model.inputs) or "nothing"


def lower_reference(reference: str, options: Mapping[str, OptionValue] | None = None) -> LoweredModel:
    """Lowers a model to a static program; workloads are lowered from shapes alone, without weights.

    `options` are those of the workload; an `.mlir` file takes `function`. Raises OptionError for an unknown model,
    option or function and for dynamic shapes, FrontendError or LoweringError for what cannot be lowered.
    """
    given = dict(options or {})
    made = _lower_file(Path(reference), given) if reference.endswith(".mlir") else _lower_named(reference, given)
    if not made.lowered.is_static:
        raise OptionError(
            f"{reference}: some inputs are numbers or of dynamic size ({describe_inputs(made)}); a plan is made for "
            "concrete tensors: export the model without dynamic_shapes, or write the sizes into the types"
        )
    return made


def _lower_named(reference: str, given: Mapping[str, OptionValue]) -> LoweredModel:
    resolved = resolve_model(reference, given, fake=True)
    in_force: Mapping[str, OptionValue] = {}
    if resolved.program is None and ":" not in reference:
        in_force = asdict(apply_options(reference, get_workload(reference).defaults, given))
        unread = _UNREAD.get(str(in_force.get("phase")))
        if unread in given:
            raise OptionError(
                f"workload {reference!r}: option {unread!r} says nothing about phase {in_force['phase']!r}"
            )
    model = resolved.program if resolved.program is not None else resolved.module
    assert model is not None
    try:
        lowered = lower_model(model, resolved.arguments)
    except (FrontendError, LoweringError) as error:
        raise type(error)(
            f"{reference} cannot be planned as a whole; torch.compile would run what does not lower in eager: {error}"
        ) from error
    return LoweredModel(resolved.name, in_force, lowered)


def _lower_file(path: Path, given: Mapping[str, OptionValue]) -> LoweredModel:
    unknown = [name for name in given if name != FUNCTION_OPTION]
    if unknown:
        raise OptionError(f"{str(path)!r} has no option {unknown[0]!r}: an .mlir file takes only {FUNCTION_OPTION!r}")
    functions = {lowered.program.name: lowered for lowered in lower_module(parse_linalg(path))}
    wanted = given.get(FUNCTION_OPTION)
    if wanted is None and len(functions) > 1:
        raise OptionError(f"{str(path)!r} has {len(functions)} functions: choose one of {', '.join(functions)}")
    chosen = next(iter(functions)) if wanted is None else str(wanted)
    if chosen not in functions:
        raise OptionError(f"{str(path)!r} has no public function {chosen!r}.{did_you_mean(chosen, functions)}")
    return LoweredModel(path.stem, {FUNCTION_OPTION: chosen}, functions[chosen])


def _shape(parameter: Parameter) -> str:
    if not isinstance(parameter, MemRefParameter):
        return parameter.element_type
    return f"{parameter.element_type}[{','.join('?' if s is None else str(s) for s in parameter.shape)}]"
