"""The language models of the evaluation, whose nests no label may resemble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch_pim.compiler_hook.lowered import LoweredProgram, lower_model
from torch_pim.experiments.corpus.held_out import HeldOut
from torch_pim.experiments.workloads.options import OptionValue
from torch_pim.experiments.workloads.registry import get_workload


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A workload at given options."""

    workload: str
    options: tuple[tuple[str, OptionValue], ...]

    @property
    def name(self) -> str:
        """E.g. `llama-7b decode 2048`."""
        return " ".join([self.workload, *(str(value) for _, value in self.options)])

    def lower(self, layers: int | None = None) -> LoweredProgram:
        """The lowered program; fewer layers have the same unique nests."""
        options: Mapping[str, OptionValue] = dict(self.options)
        if layers is not None:
            options = {**options, "layers": layers}
        module, arguments = get_workload(self.workload).build(options, fake=True)
        return lower_model(module, arguments)


EVALUATED_RUNS = tuple(
    ModelRun(workload, options)
    for workload in ("llama-7b", "gptj-6b")
    for options in (
        (("phase", "prefill"), ("sequence", 128)),
        (("phase", "prefill"), ("sequence", 2048)),
        (("phase", "decode"), ("context", 2048)),
    )
)
"""GPT-J-6B and LLaMA-7B in f32: a short and a long prompt, and one decode step."""

LAYERS = 2
"""Enough for every nest: the first layer, a later one, and what stands around them."""


def held_out_nests() -> HeldOut:
    """Shapes and structures of all nests of EVALUATED_RUNS."""
    return HeldOut.of(nest.loop_nest for run in EVALUATED_RUNS for nest in run.lower(LAYERS).concrete_nests())
