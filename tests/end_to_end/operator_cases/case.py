"""What one row of the operator table is, and how its inputs are made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ROW = (3, 5)
"""Default shape: odd sizes, so that no tile or vector width divides them."""
CUBE = (3, 4, 5)
_GENERATOR = torch.Generator().manual_seed(20)


@dataclass(frozen=True)
class Case:
    """One operator overload in use."""

    overload: str
    """The overload that the case is about, as the undecomposed exported graph names it."""
    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    note: str = ""
    """Tells cases of one overload apart."""

    def __str__(self) -> str:
        return f"{self.overload.removeprefix('aten.')}{'-' + self.note if self.note else ''}"


def case(overload: str, function: Callable[..., Any], *inputs: Any, note: str = "") -> Case:
    return Case(f"aten.{overload}", function, inputs, note)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal numbers; the default shape is ROW."""
    return torch.randn(shape or ROW, generator=_GENERATOR).to(dtype)


def scalar(value: float) -> Tensor:
    return torch.tensor(value)


def between(low: float, high: float, *shape: int) -> Tensor:
    """Uniform numbers in [low, high)."""
    return low + (high - low) * torch.rand(shape or ROW, generator=_GENERATOR)


def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    """Integers in [low, high)."""
    return torch.randint(low, high, shape or ROW, generator=_GENERATOR).to(dtype)


def flags(*shape: int) -> Tensor:
    return integers(0, 2, *shape).bool()


def distinct(*shape: int) -> Tensor:
    """A random order of the whole numbers from 0: no ties, so that orders and positions are unique."""
    shape = shape or ROW
    return torch.randperm(math.prod(shape), generator=_GENERATOR).float().reshape(shape)
