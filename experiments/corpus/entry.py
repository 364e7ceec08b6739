"""One entry of a corpus: a small model with example arguments, and where it belongs."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_pim.experiments.workloads.options import TORCH_DTYPES

Values = Literal["normal", "positive", "index"]
_DTYPES = {**TORCH_DTYPES, "i64": torch.int64, "i32": torch.int32, "i8": torch.int8}


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """Shape, element type and kind of values of one tensor argument."""

    shape: tuple[int, ...]
    dtype: str = "f32"
    values: Values = "normal"
    bound: int = 0
    """Exclusive upper bound of integer values."""

    def tensor(self, generator: torch.Generator | None = None) -> torch.Tensor:
        """A tensor of such values; under FakeTensorMode only its shape and type."""
        dtype = _DTYPES[self.dtype]
        if not dtype.is_floating_point:
            return torch.randint(0, self.bound, self.shape, dtype=dtype, generator=generator)
        if self.values == "positive":
            return (torch.rand(self.shape, generator=generator) + 0.5).to(dtype)
        return torch.randn(self.shape, generator=generator).to(dtype)

    @property
    def nbytes(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count * _DTYPES[self.dtype].itemsize


def index(shape: tuple[int, ...], bound: int) -> ArgumentSpec:
    """Valid row numbers of something with `bound` rows."""
    return ArgumentSpec(shape, "i64", "index", bound)


class FunctionModule(nn.Module):
    """A module without parameters that applies one function of tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.function(*arguments)


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """A function of tensors at one point of its family's design.

    `group` is the unit of grouped cross-validation: shape variants and close relatives of a kernel share it.
    """

    name: str
    family: str
    group: str
    function: Callable[..., Any]
    arguments: tuple[ArgumentSpec, ...]

    def build(self, *, fake: bool = True, seed: int = 0) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        """Module and arguments, by default as fake tensors that allocate nothing."""
        module = self.function if isinstance(self.function, nn.Module) else FunctionModule(self.function)
        if fake:
            with FakeTensorMode(allow_non_fake_inputs=True):
                return module.eval(), tuple(argument.tensor() for argument in self.arguments)
        generator = torch.Generator().manual_seed(seed)
        return module.eval(), tuple(argument.tensor(generator) for argument in self.arguments)

    @property
    def nbytes(self) -> int:
        """Bytes of all arguments."""
        return sum(argument.nbytes for argument in self.arguments)

    @property
    def content(self) -> str:
        """sha256 of name, family, group, arguments and the text of the function."""
        described = [self.name, self.family, self.group, [asdict(a) for a in self.arguments], source(self.function)]
        return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def source(function: Callable[..., Any]) -> str:
    """Text of a Python function; the qualified name of a function that PyTorch implements in C++."""
    try:
        return inspect.getsource(function)
    except TypeError:
        return f"{getattr(function, '__module__', '')}.{function.__name__}"
