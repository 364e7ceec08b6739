"""Inputs at the edge: empty, scalar, one-element, strided and non-finite tensors, and indices that are out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from torch_pim.compiler_hook.errors import NestAssertionError
from torch_pim.compiler_hook.target import Target

from .comparison import assert_equal_to_eager
from .compiling import compiled, target_for

NAN, INF = float("nan"), float("inf")
SPECIAL = torch.tensor([[1.0, NAN, -2.0, INF], [-INF, 0.5, NAN, 3.0], [2.0, 0.0, -1.0, -INF]])

Function = Callable[..., Any]


@pytest.fixture(scope="module")
def target() -> Target:
    return target_for("pim")


def check(function: Function, target: Target, *inputs: Tensor) -> None:
    with torch.no_grad():
        expected = function(*inputs)
        model, session = compiled(function, target)
        assert_equal_to_eager(model(*inputs), expected)
    assert not session.fallbacks


@pytest.mark.parametrize("size", [1, 2, 7, 31, 65, 129])
def test_any_size(size: int, target: Target) -> None:
    """Around vector widths and around the number of cores."""
    check(lambda x, y: (x @ y, (x * 2).softmax(-1), x.sum(0)), target, torch.randn(3, size), torch.randn(size, 2))


@pytest.mark.parametrize(
    "shape", [(0,), (0, 4), (4, 0), (2, 0, 3)], ids=lambda shape: "x".join(map(str, shape))
)  # fmt: skip
def test_tensors_without_elements(shape: tuple[int, ...], target: Target) -> None:
    check(lambda x: (x + 1, x.relu(), x.sum(), x.sum(0), torch.cat([x, x])), target, torch.randn(shape))


def test_empty_sides_of_contractions_and_indices(target: Target) -> None:
    def function(x: Tensor, y: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        return x @ y, x.t() @ x, F.embedding(index, y.t()), y[:, index], x.index_add(0, index, x[:0])

    check(function, target, torch.randn(3, 0), torch.randn(0, 4), torch.zeros(0, dtype=torch.int64))


def test_scalar_tensors(target: Target) -> None:
    def function(x: Tensor, y: Tensor, n: Tensor) -> tuple[Tensor, ...]:
        return x + y, x.exp(), x.sum(), x.reshape(1, 1), x.softmax(0), n * 3, n > 2, x.expand(2, 3) * y

    check(function, target, torch.tensor(1.5), torch.tensor(-2.0), torch.tensor(3))


def test_dimensions_of_size_one(target: Target) -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x + y, x * y, x.softmax(1), x.sum((0, 1)), x.squeeze(1) @ y.squeeze(0).t(), x.var(1, correction=0)

    check(function, target, torch.randn(5, 1, 4), torch.randn(1, 6, 4))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[::2, 1::3],
        lambda x: x[2:, 3:],
        lambda x: x.unfold(0, 3, 1)[0],
        lambda x: x[:, :1].expand(8, 5),
        lambda x: x.as_strided((3, 4), (1, 2), 5),
        lambda x: x.flip(0)[1:],
    ],
    ids=["transposed", "steps", "offset", "window", "expanded", "overlapping", "flipped"],
)
def test_inputs_that_are_views(view: Function, target: Target) -> None:
    x = view(torch.randn(8, 9))
    kept = x.clone()
    check(lambda x: (x * 2 + 1, x.sum(1), x @ x.t(), x.softmax(0)), target, x)
    assert torch.equal(x, kept)


def test_the_same_tensor_twice(target: Target) -> None:
    x = torch.randn(3, 5)
    check(lambda x, y: (x + y, x @ y.t()), target, x, x)


def test_channels_last(target: Target) -> None:
    images = torch.randn(2, 3, 6, 5).to(memory_format=torch.channels_last)
    check(lambda x, w: F.conv2d(x, w, padding=1).relu(), target, images, torch.randn(4, 3, 3, 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x == x, x != x, x < x, x >= x, x - x, x / x),
        lambda x: (x.isnan(), x.isinf(), x.isfinite()),
        lambda x: (x.relu(), F.leaky_relu(x), F.relu6(x), F.hardtanh(x), F.hardswish(x), F.elu(x)),
        lambda x: (x.clamp(-1, 1), x.clamp(min=0.0), x.clamp(max=0.0), x.clamp(min=x * 0.5)),
        lambda x: (torch.maximum(x, x.flip(0)), torch.minimum(x, x.flip(0)), torch.fmax(x, x.flip(0))),
        lambda x: (x.amax(1), x.amin(0), x.max(), *x.max(1), *x.min(0)),
        lambda x: (x.argmax(), x.argmax(1), x.argmin(0)),
        lambda x: (*x.sort(1), *x.sort(0, descending=True), *x.topk(2, 1), *x.topk(2, 0, largest=False)),
        lambda x: (x.sum(), x.mean(1), x.prod(0), x.cumsum(1), x.logsumexp(1)),
        lambda x: (x.softmax(1), x.softmax(0), x.log_softmax(1)),
        lambda x: (x.exp(), x.log(), x.sqrt(), x.tanh(), x.sigmoid(), x.sin(), x.erf(), x.log1p(), x.expm1()),
        lambda x: (1 / x, x.rsqrt(), x**2, x**3, x.abs(), x.sign(), x.floor(), x.round(), x.trunc()),
        lambda x: (x @ x.t(), torch.where(x > 0, x, -x), x.nan_to_num(), x.bool(), F.max_pool1d(x[None], 2)),
    ],
    ids=[
        "itself", "kinds", "activations", "clamp", "extremes", "amax", "argmax", "orders", "sums", "softmax",
        "functions", "powers", "others",
    ],
)  # fmt: skip
def test_nan_and_infinity(function: Function, target: Target) -> None:
    check(function, target, SPECIAL)


def test_softmax_of_minus_infinities_and_large_numbers(target: Target) -> None:
    x = torch.tensor([[-INF, 0.0, 1.0], [-INF, -INF, -INF], [1e30, -1e30, 1e30], [88.0, 89.0, 90.0]])
    check(lambda x: (x.softmax(1), x.log_softmax(1)), target, x)


LOW = torch.iinfo(torch.int64).min


def test_integers_divide_like_eager(target: Target) -> None:
    """Large ones too: a way through f64 would lose digits."""
    x = torch.tensor([LOW, LOW + 1, -7, -1, 0, 7, 2**53 + 1, -LOW - 1])
    y = torch.tensor([3, -1, 2, -5, 3, -2, 3, 2])

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        trunc = torch.div(x, y, rounding_mode="trunc")
        return x // y, x % y, trunc, torch.fmod(x, y), x // 3, x % -3, x + x, x * y, -x, x.abs(), y**5, x.square()

    check(function, target, x, y)


def test_the_smallest_integer_by_minus_one_wraps_around(target: Target) -> None:
    """The processor refuses this division; eager's own truncating division ends the process with it."""
    x, y = torch.tensor([LOW, 8]), torch.tensor([-1, -1])
    model, _ = compiled(lambda x, y: (torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y), x // y, x % y), target)
    quotient, remainder = torch.tensor([LOW, -8]), torch.tensor([0, 0])
    assert_equal_to_eager(model(x, y), (quotient, remainder, quotient, remainder))


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(torch.uint8, 0, 256), (torch.int8, -128, 128), (torch.int16, -(2**15), 2**15)], ids=str
)
def test_narrow_integers(dtype: torch.dtype, low: int, high: int, target: Target) -> None:
    x, y = torch.randint(low, high, (2, 5, 7)).to(dtype)
    y = torch.where(y == 0, torch.ones_like(y), y)

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x + y, x * y, x // y, x % y, x > y, x.sum(1), x.float(), x.max(), x >> 1, x & y, x.amin(0)

    check(function, target, x, y)


I64 = torch.int64


def test_unsigned_bytes_beside_other_types(target: Target) -> None:
    """200 must not become -56 on its way to a wider type."""
    u, i = torch.tensor([200, 3], dtype=torch.uint8), torch.tensor([1, -2])
    f, b = torch.tensor([0.5, 1.5]), torch.tensor([1, -5], dtype=torch.int8)

    def function(u: Tensor, i: Tensor, f: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        joined = torch.cat([u, i]), torch.cat([u, f]), torch.stack([u, b]), torch.where(f > 1, u, i)
        return *joined, u + i, u + b, u * f, u / 7, u.float().mean(), torch.where(f > 1, u, b), u > i

    check(function, target, u, i, f, b)


ROWS = torch.arange(15.0).reshape(3, 5)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, i: x[i], (ROWS, torch.tensor([3]))),
        (lambda x, i: x[i], (ROWS, torch.tensor([-4]))),
        (lambda x, i: x[:, i, None], (ROWS, torch.tensor([0, 99999999]))),
        (lambda x, i: x.gather(1, i), (ROWS, torch.tensor([[5]]))),
        (lambda x, i: x.index_select(0, i), (ROWS, torch.tensor([-1]))),
        (lambda x, i: x.take(i), (ROWS, torch.tensor([15]))),
        (lambda x, i: F.embedding(i, x), (ROWS, torch.tensor([7]))),
        (lambda x, i: F.embedding_bag(i, x, mode="sum"), (ROWS, torch.tensor([[0, 3]]))),
        (lambda x, i: x.scatter(1, i, 1.0), (ROWS, torch.tensor([[5]]))),
        (lambda x, i: x.scatter_add(0, i, x), (ROWS, torch.tensor([[-1]]))),
        (lambda x, i: x.scatter_reduce(1, i, x, "amax"), (ROWS, torch.tensor([[10**15]]))),
        (lambda x, i: x.index_put((i,), x[0]), (ROWS, torch.tensor([3]))),
        (lambda x, i: x.index_add(0, i, x[:1]), (ROWS, torch.tensor([3]))),
        (lambda x, i: x.index_copy(0, i, x[:1]), (ROWS, torch.tensor([4]))),
        (lambda x, i: x.index_fill(0, i, 1.0), (ROWS, torch.tensor([-4]))),
        (lambda x, i: F.nll_loss(x, i), (ROWS, torch.tensor([0, 5, 1]))),
        (lambda x, i: x // i, (torch.tensor([1, 2]), torch.tensor([1, 0]))),
        (lambda x, i: x % i, (torch.tensor([1, 2]), torch.tensor([0, 1]))),
    ],
    ids=[
        "row", "negative", "column", "gather", "index_select", "take", "embedding", "embedding_bag", "scatter",
        "scatter_add", "scatter_reduce", "index_put", "index_add", "index_copy", "index_fill", "loss", "division",
        "remainder",
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["pim", "host"])
def test_what_eager_refuses_is_an_error_and_no_crash(function: Function, inputs: tuple[Any, ...], policy: str) -> None:
    with pytest.raises((IndexError, RuntimeError)):
        function(*inputs)
    model, session = compiled(function, target_for(policy))
    with pytest.raises(NestAssertionError, match=r"out of range|index must be|divided by zero"):
        model(*inputs)
    assert not session.fallbacks


def test_a_wrong_index_leaves_the_model_usable(target: Target) -> None:
    model, _ = compiled(lambda x, i: x[i] * 2, target)
    with pytest.raises(NestAssertionError, match=r"dimension of size 3 \(in .*aten\.index\.Tensor"):
        model(ROWS, torch.tensor([3, 0]))
    assert torch.equal(model(ROWS, torch.tensor([2, -1])), ROWS[[2, 2]] * 2)
