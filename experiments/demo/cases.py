"""The models of the demo, from one operator to the language models, all in f32 and at batch size 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch_pim.experiments.workloads.options import OptionValue


@dataclass(frozen=True, slots=True)
class DemoCase:
    """A workload at given options, under a short name for tables."""

    label: str
    workload: str
    options: Mapping[str, OptionValue] = field(default_factory=dict)


_DECODE: Mapping[str, OptionValue] = {"phase": "decode", "context": 2048}
_PREFILL: Mapping[str, OptionValue] = {"phase": "prefill", "sequence": 128}

# A matrix that the host has just written must be flushed before PIM may read it; the weight of a layer is resident.
CASES = (
    DemoCase("gemv 4096x4096, matrix from host", "gemv"),
    DemoCase("gemv 4096x4096, matrix resident", "mlp", {"layers": 1}),
    DemoCase("MLP 3 x 4096", "mlp"),
    DemoCase("attention block, decode 2048", "attention", _DECODE),
    DemoCase("LLaMA-7B, decode 2048", "llama-7b", _DECODE),
    DemoCase("LLaMA-7B, prefill 128", "llama-7b", _PREFILL),
    DemoCase("GPT-J-6B, decode 2048", "gptj-6b", _DECODE),
    DemoCase("GPT-J-6B, prefill 128", "gptj-6b", _PREFILL),
)
