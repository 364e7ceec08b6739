"""Hand-written canonical nests, and a slow reader of records to check the fast ones against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from torch_pim.features.extraction import extract_loop_nest
from torch_pim.features.nest import ELEMENT_BYTES, NO_LOOP, Access, LoopNest

NESTS = Path(__file__).parent / "nests"

LoadNest = Callable[[str], LoopNest]


@pytest.fixture(scope="session")
def nest_of() -> LoadNest:
    """`nest_of("matmul")`: the record of tests/features/nests/matmul.mlir."""
    found: dict[str, LoopNest] = {}

    def load(name: str) -> LoopNest:
        if name not in found:
            found[name] = extract_loop_nest((NESTS / f"{name}.mlir").read_text(), name, f"code of {name}")
        return found[name]

    return load


@pytest.fixture(scope="session")
def nest_text() -> Callable[[str], str]:
    """`nest_text("matmul")`: the text of tests/features/nests/matmul.mlir."""
    return lambda name: (NESTS / f"{name}.mlir").read_text()


@pytest.fixture(scope="session")
def nest_names() -> list[str]:
    return sorted(path.stem for path in NESTS.glob("*.mlir"))


Trace = Callable[[LoopNest], Iterator[tuple[Access, int]]]


@pytest.fixture(scope="session")
def trace_of() -> Trace:
    """Every executed access of a concrete affine nest in program order, with its byte address; buffers lie apart."""
    return _trace


def _trace(nest: LoopNest) -> Iterator[tuple[Access, int]]:
    base: dict[int, int] = {}
    free = 0
    for index, buffer in enumerate(nest.buffers):
        base[index] = free
        free += (int(buffer.nbytes) // 64 + 3) * 64  # type: ignore[arg-type]

    def first(loop: int) -> int:
        """Position of the first access inside a loop: where the loop stands in its parent's body."""
        return min(
            (p for p, a in enumerate(nest.accesses) if loop in nest.enclosing(a.loop)), default=len(nest.accesses)
        )

    def body(loop: int, counters: Mapping[int, int]) -> Iterator[tuple[Access, int]]:
        parts = [(p, a) for p, a in enumerate(nest.accesses) if a.loop == loop]
        inner = [(first(i), i) for i, other in enumerate(nest.loops) if other.parent == loop]
        for _, part in sorted([*parts, *inner], key=lambda item: item[0]):
            if isinstance(part, Access):
                moved = sum(counters[i] * int(s) for i, s in part.byte_strides)  # type: ignore[arg-type]
                yield part, base[part.buffer] + int(part.byte_offset) + moved  # type: ignore[arg-type]
            else:
                for step in range(int(nest.loops[part].trip)):  # type: ignore[arg-type]
                    yield from body(part, {**counters, part: step})

    yield from body(NO_LOOP, {})


Distinct = Callable[[LoopNest], tuple[int, int]]


@pytest.fixture(scope="session")
def distinct_of(trace_of: Trace) -> Distinct:
    """(touched bytes, touched lines) of a nest, counted one access at a time."""

    def count(nest: LoopNest) -> tuple[int, int]:
        seen: set[int] = set()
        for access, address in trace_of(nest):
            seen.update(range(address, address + ELEMENT_BYTES[access.element_type]))
        return len(seen), len({byte // 64 for byte in seen})

    return count
