"""Compiled models whose session and device a test can look into."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torch_pim.compiler_hook.api import CompiledModel
from torch_pim.compiler_hook.graph_compiler import Session
from torch_pim.compiler_hook.options import CompileOptions
from torch_pim.compiler_hook.target import Target, resolve

from .devices import RecordingDevice, Wrap

POLICIES = ("host", "pim", "random", "learned")


def target_for(policy: str, wrap: Wrap = RecordingDevice) -> Target:
    """Two host threads and a wrapped device; a learned policy without its model is an error, not a fallback."""
    target = resolve(CompileOptions(policy=policy, on_model_error="error", threads=2))
    return dataclasses.replace(target, device=wrap(target.device))


def compiled(
    model: nn.Module | Callable[..., Any], target: Target, dynamic: bool | None = None
) -> tuple[CompiledModel, Session]:
    """What torch_pim.compile makes, with its session."""
    torch._dynamo.reset()
    session = Session(target, [], [])
    return CompiledModel(model, session, dynamic), session  # type: ignore[arg-type]
