"""Each test starts with a Dynamo that remembers nothing and a known random state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(7)
    yield
    torch._dynamo.reset()
