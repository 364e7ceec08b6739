"""The MODEL argument and the options that shape it, the same for every command that takes a model."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping

SHAPE_OPTIONS: Mapping[str, str] = {
    "phase": "prefill or decode",
    "sequence": "prompt tokens of a prefill",
    "context": "tokens already in the cache of a decode step",
    "layers": "number of layers",
    "dtype": "f32, f16 or bf16",
    "batch": "sequences, rows or images per pass",
}
"""The options that most workloads share; `--set` reaches all others."""

WORKLOAD_NAMES = (
    "llama-7b", "gptj-6b", "llama-small", "gptj-small", "mlp", "attention", "bert-layer", "bert-small", "vit-tiny",
    "resnet-small", "conv-bn-relu", "lstm", "embedding-bag", "gemv", "gemm", "add", "relu", "gelu", "softmax",
    "layer-norm", "rms-norm", "row-sum", "column-sum", "transpose", "dot",
)  # fmt: skip
"""The built-in workloads, for the help text, which must not import torch; a test holds them to the registry."""

_WORKLOAD_LINES = textwrap.fill(
    ", ".join(WORKLOAD_NAMES), 116, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
)

MODEL_HELP = f"""\
MODEL is the name of a workload, 'package.module:factory' (called without arguments, returns (module, arguments)), a
'.pt2' file of torch.export, or a '.mlir' file in linalg on tensors. Workloads are planned from shapes alone, so they
need no memory for weights. Factories and .pt2 files execute code: name only what you trust.

workloads:
{_WORKLOAD_LINES}"""


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="workload, package.module:factory, FILE.pt2 or FILE.mlir")
    group = parser.add_argument_group("shape of the model", "each workload takes some of these; a wrong one lists them")
    for name, text in SHAPE_OPTIONS.items():
        group.add_argument(f"--{name}", metavar=name.upper(), help=text)
    group.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_assignment,
        help="any other option of the workload, e.g. rows=1024; 'function=NAME' for a .mlir file; repeatable",
    )


def model_options(arguments: argparse.Namespace) -> dict[str, str]:
    """The options that were given, by name; raises OptionError for one given twice."""
    from torch_pim.compiler_hook.errors import OptionError

    given = {name: getattr(arguments, name) for name in SHAPE_OPTIONS if getattr(arguments, name) is not None}
    for name, value in arguments.set:
        if name in given:
            raise OptionError(f"option {name!r} of model {arguments.model!r} is given twice")
        given[name] = value
    return given


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name.replace("-", "_"), value
