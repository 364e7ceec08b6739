"""A workload: a model with example arguments, built for real or with fake tensors for planning only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_pim.experiments.workloads.options import OptionInfo, OptionValue, apply_options, option_infos

Built = tuple[nn.Module, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A named model with options. `factory` maps an options record to a module in inference mode and its arguments."""

    name: str
    description: str
    defaults: Any
    """Frozen dataclass of options; its field values are the defaults."""
    factory: Callable[[Any], Built]

    @property
    def options(self) -> tuple[OptionInfo, ...]:
        return option_infos(self.defaults)

    def build(self, given: Mapping[str, OptionValue] | None = None, *, fake: bool = False, seed: int = 0) -> Built:
        """Module and example arguments; no two arguments are the same tensor.

        `fake=True` allocates nothing (FakeTensorMode), which is how models larger than memory are planned. Real
        weights and arguments depend on `seed` alone; the global random state is left as it was. Raises OptionError.
        """
        chosen = apply_options(self.name, self.defaults, given or {})
        if fake:
            with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
                module, arguments = self.factory(chosen)
        else:
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                torch.manual_seed(seed)
                module, arguments = self.factory(chosen)
        return module.eval().requires_grad_(False), arguments
