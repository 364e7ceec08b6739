"""Programs at concrete shapes: layouts of views, calls, unique nests, and errors that tell what to change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim

from torch_pim.compiler_hook.errors import LoweringError, ShapeError
from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.compiler_hook.outline.layout import Layout, contiguous
from torch_pim.compiler_hook.outline.nest_function import MemRefParameter, ScalarParameter
from torch_pim.compiler_hook.outline.program import (
    Allocate,
    Check,
    Compute,
    Dimension,
    LoadScalar,
    Program,
    Slot,
    StoreScalar,
    View,
)
from torch_pim.compiler_hook.outline.specialise import bindings, specialise
from torch_pim.compiler_hook.outline.specialised_program import BufferView

Lower = Callable[..., LoweredProgram]
LowerText = Callable[[str], LoweredProgram]
N = Dim("n", min=2)


def program(*steps: object, parameters: tuple[object, ...] = (), results: tuple[Slot, ...] = ()) -> Program:
    kinds = tuple(MemRefParameter("f32", (None,), (1,), 0) for _ in results)
    return Program("main", parameters, steps, results, kinds, ())


def view_of(step: View, source: Layout) -> Layout:
    """Layout of a view of a parameter, at whose beginning the source lies."""
    unknown = MemRefParameter("f32", (None,) * len(source.shape), (None,) * len(source.shape), 0)
    (value,) = specialise(program(step, parameters=(unknown,), results=(step.result,)), [source]).results
    assert isinstance(value, BufferView)
    return value.layout


def dynamic(rank: int) -> MemRefParameter:
    return MemRefParameter("f32", (None,) * rank, (None,) * rank, None)


def subview(offsets: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...], *dropped: int) -> View:
    layout = dynamic(len(sizes) - len(dropped))
    return View("subview", Slot(1), Slot(0), layout, offsets, sizes, steps, dropped=dropped)


@pytest.mark.parametrize(
    ("step", "torch_view"),
    [
        (subview((1, 0, 2), (2, 6, 3), (1, 1, 2)), lambda x: x[1:3, :, 2:8:2]),
        (subview((1, 0, 2), (1, 6, 3), (1, 1, 1), 0), lambda x: x[1, :, 2:5]),
        (subview((3, 4, 0), (1, 1, 8), (1, 1, 1), 0, 1), lambda x: x[3, 4]),
        (View("expand_shape", Slot(1), Slot(0), dynamic(5), sizes=(4, 2, 3, 2, 4), groups=((0,), (1, 2), (3, 4))),
         lambda x: x.view(4, 2, 3, 2, 4)),
        (View("collapse_shape", Slot(1), Slot(0), dynamic(2), groups=((0, 1), (2,))), lambda x: x.view(24, 8)),
        (View("cast", Slot(1), Slot(0), dynamic(3)), lambda x: x),
        (View("reinterpret_cast", Slot(1), Slot(0), dynamic(2), (5,), (3, 2), (16, 4)),
         lambda x: x.as_strided((3, 2), (16, 4), 5)),
    ],
    ids=["subview", "dropped dimension", "two dropped dimensions", "expand", "collapse", "cast", "reinterpret"],
)  # fmt: skip
def test_views_are_those_of_pytorch(step: View, torch_view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.empty(4, 6, 8)
    expected = torch_view(x)
    found = view_of(step, contiguous(x.shape))
    assert found == Layout(tuple(expected.shape), expected.stride(), expected.storage_offset())


def test_sizes_from_a_shape_tensor() -> None:
    steps = (
        Allocate(Slot(1), "i64", (2,)),
        Dimension(Slot(2), Slot(0), 0),
        Compute("arith.divsi", Slot(3), (Slot(2), 4), "index", "index"),
        StoreScalar(Slot(3), Slot(1), (0,)),
        StoreScalar(4, Slot(1), (1,)),
        LoadScalar(Slot(4), Slot(1), (0,)),
        Allocate(Slot(5), "f32", (Slot(4),)),
        View("reshape", Slot(6), Slot(0), dynamic(2), shape=Slot(1)),
    )
    made = program(*steps, parameters=(dynamic(1),), results=(Slot(6), Slot(5)))
    reshaped, allocated = specialise(made, [contiguous((20,))]).results
    assert reshaped.layout == contiguous((5, 4))
    assert allocated.layout == contiguous((5,))


def test_a_shape_tensor_that_nobody_filled() -> None:
    steps = (Allocate(Slot(1), "i64", (2,)), LoadScalar(Slot(2), Slot(1), (0,)))
    with pytest.raises(LoweringError, match=r"main: element 0 of a shape tensor is read but never stored"):
        specialise(program(*steps, parameters=(dynamic(1),)), [contiguous((3,))])


def test_a_failed_check_is_a_shape_error_with_its_message(lower: Lower) -> None:
    check = program(
        Dimension(Slot(1), Slot(0), 0),
        Compute("arith.cmpi", Slot(2), (Slot(1), 4), "index", "i1", 0),
        Check(Slot(2), "must be four"),
        parameters=(dynamic(1),),
    )
    specialise(check, [contiguous((4,))])
    with pytest.raises(ShapeError, match="main: must be four"):
        specialise(check, [contiguous((5,))])


@pytest.fixture(scope="module")
def matmul(lower: Lower) -> LoweredProgram:
    return lower(lambda x, w: torch.relu(x @ w), torch.randn(8, 16), torch.randn(16, 4), dynamic_shapes=({0: N}, None))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"main: 0 arguments given, 2 expected"),
        (
            [contiguous((8, 16)), contiguous((16, 5))],
            r"argument 1 has shape 16x5, compiled for 16x4; compile again for",
        ),
        ([contiguous((8, 17)), contiguous((16, 4))], r"argument 0 has shape 8x17, compiled for \?x16"),
        ([contiguous((8,)), contiguous((16, 4))], r"argument 0 has shape 8, compiled for \?x16"),
        ([contiguous(()), contiguous((16, 4))], r"argument 0 has shape scalar"),
        ([3, contiguous((16, 4))], r"argument 0 must be a tensor"),
        ([Layout((8, 16), (1, 8)), contiguous((16, 4))], r"argument 0 has strides \(1, 8\), expected contiguous ones"),
    ],
)
def test_arguments_that_do_not_fit(matmul: LoweredProgram, arguments: list[object], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        matmul.specialised(arguments)


def test_a_tensor_for_a_number() -> None:
    with pytest.raises(ShapeError, match="argument 0 must be a i64 number"):
        specialise(program(parameters=(ScalarParameter("i64"),)), [contiguous((2,))])


def test_dynamic_programs_need_layouts(matmul: LoweredProgram) -> None:
    assert not matmul.is_static
    with pytest.raises(ShapeError, match=r"argument 0 has dynamic dimensions; give concrete argument layouts"):
        matmul.specialised()


@pytest.mark.parametrize("rows", [2, 5, 300])
def test_symbolic_nests_become_concrete(matmul: LoweredProgram, rows: int) -> None:
    specialised = matmul.specialised([contiguous((rows, 16)), contiguous((16, 4))])
    (nest,) = specialised.nests
    assert nest.loop_nest.symbols == frozenset()
    assert nest.loop_nest.parallel_trip == rows * 4
    assert specialised.calls[0].iterations == rows * 4
    assert specialised.results[0].layout == contiguous((rows, 4))
    (function,) = matmul.program.functions
    assert function.loop_nest.symbols
    assert nest.function is function


def test_equal_shapes_are_one_nest_whatever_offset_they_begin_at(lower: Lower) -> None:
    def halves(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.exp(x[:, 2:4]), torch.exp(x[:, 8:10]), torch.exp(x[:, 6:9])

    made = lower(halves, torch.randn(8, 16), dynamic_shapes=({0: N},))
    assert [call.nest for call in made.specialised([contiguous((8, 16))]).calls] == [0, 0, 1]


def test_specialised_programs_are_remembered(matmul: LoweredProgram) -> None:
    layouts = [contiguous((9, 16)), contiguous((16, 4))]
    assert matmul.specialised(layouts) is matmul.specialised(list(layouts))
    assert matmul.concrete_nests(layouts) is matmul.specialised(layouts).nests


def test_calls_without_work_are_left_out(lower: Lower) -> None:
    made = lower(lambda x: (x.sum(0), torch.exp(x)), torch.randn(8, 4), dynamic_shapes=({0: Dim("n", min=0, max=64)},))
    assert len(made.specialised([contiguous((8, 4))]).calls) == 2
    # The sums of no rows are zeros, which something must store.
    (call,) = made.specialised([contiguous((0, 4))]).calls
    assert [a.value.layout.shape for a in call.arguments if a.stored] == [(4,)]


def test_bindings_name_sizes_strides_and_numbers(lower: Lower) -> None:
    (nest,) = lower(lambda x: torch.exp(x), torch.randn(4, 6)).concrete_nests()
    assert bindings(nest.parameters) == {
        "a0.d0": 4, "a0.s0": 6, "a0.d1": 6, "a0.s1": 1, "a1.d0": 4, "a1.s0": 6, "a1.d1": 6, "a1.s1": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "torch_view",
    [
        lambda x: x[1:5, 2],
        lambda x: x[:, 1:4, 3],
        lambda x: x[2],
        lambda x: x[:, :, ::2],
        lambda x: x[1::3, 1, 2:5],
        lambda x: x.view(2, 3, 5, 7)[1],
        lambda x: x.reshape(6, 35)[:, 7:21],
    ],
    ids=["row block", "column", "first", "step", "mixed", "expanded", "collapsed"],
)
def test_a_nest_reads_the_view_that_pytorch_takes(
    lower: Lower, torch_view: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Elements, in row-major order, at the same offsets as PyTorch's own view of the tensor."""
    x = torch.arange(6 * 5 * 7, dtype=torch.float32).view(6, 5, 7)
    specialised = lower(lambda x: torch.exp(torch_view(x)), x).specialised()
    (argument,) = [a.value for call in specialised.calls for a in call.arguments if a.loaded]
    layout = argument.layout
    assert torch.equal(x.as_strided(layout.shape, layout.strides, layout.offset).flatten(), torch_view(x).flatten())


def test_an_attention_block_at_two_lengths(lower: Lower) -> None:
    arguments = [torch.randn(1, 2, 8, 4) for _ in range(3)]
    made = lower(F.scaled_dot_product_attention, *arguments, dynamic_shapes=({2: N}, {2: N}, {2: N}))
    short, long = (made.specialised([contiguous((1, 2, n, 4))] * 3) for n in (8, 32))
    assert len(short.calls) == len(long.calls)
    trips = [sum(nest.loop_nest.parallel_trip for nest in s.nests) for s in (short, long)]
    assert trips[1] > 4 * trips[0]
