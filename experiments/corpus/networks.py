"""Entries made from three small networks of the workloads; none of them is a language model of the evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from torch_pim.experiments.workloads.options import OptionValue
from torch_pim.experiments.workloads.registry import get_workload


@dataclass(frozen=True, slots=True)
class NetworkEntry:
    """A workload at given options; its family and group are the network's name."""

    name: str
    family: str
    group: str
    options: tuple[tuple[str, OptionValue], ...]

    def build(self, *, fake: bool = True, seed: int = 0) -> tuple[nn.Module, tuple[Any, ...]]:
        return get_workload(self.family).build(dict(self.options), fake=fake, seed=seed)

    @property
    def content(self) -> str:
        return self.name


def _network(workload: str, options: Mapping[str, OptionValue]) -> NetworkEntry:
    text = ",".join(f"{k}={v}" for k, v in options.items())
    return NetworkEntry(f"{workload}/{text}", workload, "network", tuple(options.items()))


NETWORKS = (
    _network("resnet-small", {"batch": 1, "image": 224}),
    _network("resnet-small", {"batch": 4, "image": 96}),
    _network("bert-small", {"sequence": 100, "layers": 1}),
    _network("bert-small", {"sequence": 384, "layers": 1, "batch": 4}),
    _network("bert-small", {"sequence": 64, "layers": 1, "heads": 12}),
    _network("vit-tiny", {"layers": 1}),
    _network("vit-tiny", {"layers": 1, "heads": 6, "batch": 4}),
)
