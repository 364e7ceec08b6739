"""Buffer versions: who makes a value, who reads it, when it ends."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from torch_pim.compiler_hook.lowered import LoweredProgram, lower_model
from torch_pim.compiler_hook.outline.layout import Layout, contiguous
from torch_pim.compiler_hook.outline.nest_function import ConcreteNest, NestFunction
from torch_pim.compiler_hook.outline.program import Program
from torch_pim.compiler_hook.outline.specialised_program import (
    BoundArgument,
    BoundCall,
    BufferView,
    RootBuffer,
    SpecialisedProgram,
)
from torch_pim.compiler_hook.placement.data_flow import NO_CALL, buffer_versions
from torch_pim.features.nest import Access, Buffer, Loop, LoopNest
from torch_pim.features.placement import BufferVersion

Lower = Callable[..., LoweredProgram]
ROWS, COLUMNS = 4, 10


def versions(program: LoweredProgram) -> tuple[BufferVersion, ...]:
    return buffer_versions(program.specialised(), program.weights)


def made_by(found: tuple[BufferVersion, ...], call: int) -> BufferVersion:
    (version,) = [version for version in found if version.producer == call]
    return version


# By hand: calls that load some views of one buffer and store all or part of others.


def elements(count: int, kind: str, buffer: int, *, indirect: bool = False) -> Access:
    return Access(buffer, kind, "f32", 0, ((0, 4),), indirect, indirect_loops=(0,) if indirect else ())


def call(
    number: int, loads: list[BufferView], stores: list[BufferView], *, scatter: bool = False
) -> tuple[ConcreteNest, BoundCall]:
    views = [*loads, *stores]
    count = max(view.layout.elements for view in views)
    accesses = [elements(count, "load", i) for i in range(len(loads))]
    accesses += [elements(count, "store", len(loads) + i, indirect=scatter) for i in range(len(stores))]
    buffers = [
        Buffer("f32", view.layout.shape, i < len(loads), i >= len(loads), view.nbytes) for i, view in enumerate(views)
    ]
    nest = LoopNest(
        f"nest_{number}", (Loop("parallel", count, -1),), 1, tuple(accesses), (), tuple(buffers), "compute", True, ""
    )
    arguments = tuple(BoundArgument(view, i < len(loads), i >= len(loads)) for i, view in enumerate(views))
    return ConcreteNest(NestFunction("", "", (), nest), nest, ()), BoundCall(number, arguments, count, f"call {number}")


def flow(*calls: tuple[ConcreteNest, BoundCall], results: tuple[BufferView, ...] = ()) -> tuple[BufferVersion, ...]:
    """Versions where buffer 0 is a parameter and buffers 1 and 2 are temporaries of ROWS x COLUMNS."""
    roots = (
        RootBuffer("parameter", "f32", 40, 0),
        RootBuffer("temporary", "f32", 40),
        RootBuffer("temporary", "f32", 40),
    )
    program = Program("main", (), (), (), (), ())
    nests, bound = zip(*calls, strict=True)
    return buffer_versions(SpecialisedProgram(program, roots, nests, bound, results), ())


def view(root: int, layout: Layout | None = None) -> BufferView:
    return BufferView(root, layout or contiguous((ROWS, COLUMNS)), "f32")


def columns(root: int, first: int, count: int) -> BufferView:
    return view(root, Layout((ROWS, count), (COLUMNS, 1), first))


def test_a_chain() -> None:
    found = flow(call(0, [view(0)], [view(1)]), call(1, [view(1)], [view(2)]), results=(view(2),))
    assert found == (
        BufferVersion(0, 160, "input", NO_CALL, (0,)),
        BufferVersion(1, 160, "temporary", 0, (1,)),
        BufferVersion(2, 160, "output", 1, (), leaves=True),
    )


def test_a_full_overwrite_ends_the_version() -> None:
    found = flow(
        call(0, [view(0)], [view(1)]),
        call(1, [view(1)], [view(2)]),
        call(2, [view(0)], [view(1)]),
        call(3, [view(1)], [view(2)]),
    )
    assert made_by(found, 0).consumers == (1,)
    assert made_by(found, 2).consumers == (3,)


def test_an_update_in_place_reads_the_old_version() -> None:
    update = view(1)
    found = flow(call(0, [view(0)], [update]), call(1, [update], [update]), call(2, [update], [view(2)]))
    assert made_by(found, 0).consumers == (1,)
    assert made_by(found, 1).consumers == (2,)


def test_columns_that_interleave_live_side_by_side() -> None:
    left, right = columns(1, 0, 3), columns(1, 3, 7)
    found = flow(
        call(0, [columns(0, 0, 3)], [left]), call(1, [columns(0, 3, 7)], [right]), call(2, [view(1)], [view(2)])
    )
    assert [(v.nbytes, v.consumers) for v in found if v.role == "temporary"][:2] == [(48, (2,)), (112, (2,))]


def test_a_store_with_gaps_does_not_end_what_lies_in_them() -> None:
    """Columns 5..9 of all rows surround row 1, columns 0..2, without touching it."""
    corner = view(1, Layout((1, 3), (COLUMNS, 1), COLUMNS))
    found = flow(call(0, [view(0)], [corner]), call(1, [view(0)], [columns(1, 5, 5)]), call(2, [view(1)], [view(2)]))
    assert made_by(found, 0).consumers == (2,)


def test_the_same_columns_again_replace_the_old_ones() -> None:
    part = columns(1, 2, 3)
    found = flow(call(0, [view(0)], [part]), call(1, [view(0)], [part]), call(2, [view(1)], [view(2)]))
    assert made_by(found, 0).consumers == ()
    assert made_by(found, 1).consumers == (2,)


def test_a_scatter_reads_what_it_leaves() -> None:
    found = flow(
        call(0, [view(0)], [view(1)]), call(1, [view(0)], [view(1)], scatter=True), call(2, [view(1)], [view(2)])
    )
    assert made_by(found, 0).consumers == (1,)
    assert made_by(found, 1).consumers == (2,)


def test_reading_a_part_consumes_only_what_overlaps() -> None:
    first, second = view(1, contiguous((2, COLUMNS))), view(1, Layout((2, COLUMNS), (COLUMNS, 1), 20))
    found = flow(call(0, [view(0)], [first]), call(1, [view(0)], [second]), call(2, [second], [view(2)]))
    assert made_by(found, 0).consumers == ()
    assert made_by(found, 1).consumers == (2,)


# From models.


def test_concatenation_keeps_both_parts(lower: Lower) -> None:
    for dim in (0, 1):
        found = versions(
            lower(lambda x, y, d=dim: torch.exp(torch.cat([x, y], d)), torch.randn(4, 8), torch.randn(4, 8))
        )
        assert made_by(found, 0).consumers == (2,)
        assert made_by(found, 1).consumers == (2,)
        assert made_by(found, 2).leaves


def test_an_accumulator_of_one_call_moves_nothing(lower: Lower) -> None:
    found = versions(lower(lambda x, y: torch.relu(x @ y), torch.randn(32, 16), torch.randn(16, 24)))
    assert [v.role for v in found if v.producer == NO_CALL] == ["input", "input"]
    assert all(v.consumers == () for v in found if v.producer == 0)
    assert [v.leaves for v in found if v.role == "output"] == [True]


def test_index_add_reads_the_copy_it_adds_to(lower: Lower) -> None:
    rows = torch.tensor([0, 2])
    found = versions(lower(lambda x, i, y: x.index_add(0, i, y), torch.randn(8, 4), rows, torch.randn(2, 4)))
    (output,) = [v for v in found if v.leaves]
    assert output.role == "output"
    assert any(output.producer in v.consumers for v in found if v.role == "temporary")


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.linear = nn.Linear(16, 16)
        self.register_buffer("scale", torch.ones(16))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        return F.linear(torch.relu(self.linear(x)), self.linear.weight) * self.scale


def test_weights_and_inputs() -> None:
    found = versions(lower_model(Layers(), (torch.randint(0, 50, (6,)),)))
    sizes = {v.nbytes: v for v in found if v.role == "weight"}
    assert set(sizes) == {50 * 16 * 4, 16 * 16 * 4, 16 * 4}
    assert len(sizes[16 * 16 * 4].consumers) == 2
    (tokens,) = [v for v in found if v.role == "input"]
    assert tokens.nbytes == 6 * 8
    assert tokens.producer == NO_CALL


def test_every_consumer_follows_its_producer() -> None:
    found = versions(lower_model(Layers(), (torch.randint(0, 50, (6,)),)))
    for version in found:
        assert list(version.consumers) == sorted(set(version.consumers))
        assert all(consumer > version.producer for consumer in version.consumers)
