"""All built-in workloads by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from torch_pim.compiler_hook.errors import OptionError
from torch_pim.experiments.workloads.blocks import BLOCKS
from torch_pim.experiments.workloads.convolutions import CONVOLUTIONS
from torch_pim.experiments.workloads.encoders import ENCODERS
from torch_pim.experiments.workloads.language_models import LANGUAGE_MODELS
from torch_pim.experiments.workloads.operators import OPERATORS
from torch_pim.experiments.workloads.recurrent import RECURRENT
from torch_pim.experiments.workloads.workload import Workload

WORKLOADS: Mapping[str, Workload] = MappingProxyType(
    {
        workload.name: workload
        for workload in (*LANGUAGE_MODELS, *BLOCKS, *ENCODERS, *CONVOLUTIONS, *RECURRENT, *OPERATORS)
    }
)


def get_workload(name: str) -> Workload:
    """The workload of that name; raises OptionError with the closest names."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    close = difflib.get_close_matches(name, WORKLOADS, n=3)
    hint = f"did you mean {' or '.join(repr(c) for c in close)}?" if close else f"known: {', '.join(WORKLOADS)}."
    raise OptionError(
        f"no workload {name!r}: {hint} "
        "A model of your own is 'package.module:factory' or a path ending in '.pt2' or '.mlir'."
    )
