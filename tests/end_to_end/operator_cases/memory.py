"""Operators that move, select or make elements: indexing, scatters, views, joins, pads and constants."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .case import Case, case, flags, integers, normal

_ONCE = torch.tensor([[4, 0, 2], [1, 3, 0], [2, 4, 1]])
"""No index twice in a row: the order of a scatter does not matter."""

INDEXING: list[Case] = [
    case("gather.default", lambda x, i: [x.gather(1, i), x.gather(0, i % 3)], normal(), integers(0, 5)),
    case(
        "index_select.default",
        lambda x, i: [x.index_select(0, i % 3), x.index_select(1, i)],
        normal(),
        integers(0, 5, 7),
    ),
    case(
        "index_select.default",
        lambda x, i: x.index_select(1, i),
        normal(),
        integers(0, 5, 7, dtype=torch.int32),
        note="int32",
    ),
    case("index.Tensor", lambda x, i, j: x[i, j], normal(4, 5, 3), integers(0, 4, 6), integers(0, 5, 6)),
    case("index.Tensor", lambda x, i: x[:, i], normal(4, 5, 3), integers(-5, 5, 6), note="negative"),
    case(
        "index.Tensor",
        lambda x, i, j: x[i, :, j],
        normal(4, 5, 3),
        integers(0, 4, 2, 1),
        integers(0, 3, 2),
        note="apart",
    ),
    case("take.default", torch.take, normal(), integers(0, 15, 4)),
    case("embedding.default", F.embedding, integers(0, 9, 2, 5), normal(9, 4)),
    case(
        "embedding_bag.padding_idx", lambda i, w: F.embedding_bag(i, w, mode="sum"), integers(0, 9, 3, 5), normal(9, 4)
    ),
    case(
        "embedding_bag.padding_idx",
        lambda i, w: F.embedding_bag(i, w, mode="mean"),
        integers(0, 9, 3, 5),
        normal(9, 4),
        note="mean",
    ),
    case("one_hot.default", lambda i: F.one_hot(i, 5), integers(0, 5)),
    case("select.int", lambda x: [x[1] + 0, x[:, -1] + 0], normal()),
    case("slice.Tensor", lambda x: x[1:, ::2] + 0, normal()),
    case("slice.Tensor", lambda x: x[:, -3:-1] + 0, normal(), note="negative"),
    case("diagonal.default", lambda x: x.diagonal(1) + 0, normal()),
]

SCATTERS: list[Case] = [
    case("scatter.src", lambda x, i, y: x.scatter(1, i, y), normal(), _ONCE, normal(3, 3)),
    case("scatter.value", lambda x, i: x.scatter(1, i, 7.0), normal(), _ONCE),
    case("scatter_add.default", lambda x, i, y: x.scatter_add(0, i, y), normal(), integers(0, 3, 4, 5), normal(4, 5)),
    *(
        case(
            "scatter_reduce.two",
            lambda x, i, y, kind=kind: x.scatter_reduce(0, i, y, kind),
            normal(),
            integers(0, 3, 4, 5),
            normal(4, 5),
            note=kind,
        )
        for kind in ("sum", "prod", "amax", "amin", "mean")
    ),
    case(
        "index_put.default", lambda x, i, y: x.index_put((i,), y), normal(7, 3), torch.tensor([1, 6, 0]), normal(3, 3)
    ),
    case(
        "index_put.default",
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        normal(7, 3),
        torch.tensor([1, 6, 1]),
        normal(3, 3),
        note="accumulate",
    ),
    case("index_put.default", lambda x, m: x.index_put((m,), torch.tensor(3.0)), normal(), flags(), note="mask"),
    case("index_add.default", lambda x, i, y: x.index_add(0, i, y), normal(7, 3), integers(0, 7, 4), normal(4, 3)),
    case(
        "index_copy.default",
        lambda x, i, y: x.index_copy(1, i, y),
        normal(2, 7, 3),
        torch.tensor([5, 0]),
        normal(2, 2, 3),
    ),
    case("slice_scatter.default", lambda x, y: x.slice_scatter(y, 1, 1, 3), normal(), normal(3, 2)),
]

VIEWS: list[Case] = [
    case("view.default", lambda x: x.view(15) * 2, normal()),
    case("reshape.default", lambda x: x.t().reshape(-1, 3) * 2, normal()),
    case("flatten.using_ints", lambda x: x.flatten(1) * 2, normal(2, 3, 5)),
    case("permute.default", lambda x: x.permute(2, 0, 1) + 1, normal(2, 3, 5)),
    case("transpose.int", lambda x: x.transpose(1, 2).contiguous(), normal(2, 3, 5)),
    case("t.default", lambda x: x.t() * 2, normal()),
    case("squeeze.dim", lambda x: x.squeeze(1) * 2, normal(3, 1, 5)),
    case("squeeze.default", lambda x: x.squeeze() * 2, normal(1, 3, 1)),
    case("unsqueeze.default", lambda x: x.unsqueeze(1) * 2, normal()),
    case("expand.default", lambda x: x.expand(4, 3, 5) * 2, normal()),
    case("unfold.default", lambda x: x.unfold(1, 3, 2) * 2, normal(3, 7)),
    case("as_strided.default", lambda x: x.as_strided((2, 2), (1, 5), 2) * 2, normal()),
    case("split.Tensor", lambda x: [part * 2 for part in x.split(2, 1)], normal()),
    case("split_with_sizes.default", lambda x: [part * 2 for part in x.split([1, 4], 1)], normal()),
    case("unbind.int", lambda x: [part * 2 for part in x.unbind(0)], normal()),
    case("clone.default", torch.clone, normal()),
]

JOINS: list[Case] = [
    case("cat.default", lambda x, y: torch.cat([x, y, x], 1), normal(3, 2), normal(3, 4)),
    case("cat.default", lambda x, y: torch.cat([x, y]), normal(2, 3), integers(0, 9, 1, 3), note="mixed"),
    case("stack.default", lambda x, y: [torch.stack([x, y], axis) for axis in (0, 1, 2)], normal(), normal()),
    case("repeat.default", lambda x: x.repeat(2, 3), normal()),
    case("repeat_interleave.self_int", lambda x: x.repeat_interleave(3, 1), normal()),
    case("roll.default", lambda x: [x.roll(2, 1), x.roll((1, -2), (0, 1))], normal()),
    case("flip.default", lambda x: [x.flip(0), x.flip(0, 1)], normal()),
    case("tril.default", lambda x: [x.tril(), x.tril(-1)], normal(4, 5)),
    case("triu.default", lambda x: [x.triu(), x.triu(2)], normal(4, 5)),
]

PADS: list[Case] = [
    case("pad.default", lambda x: F.pad(x, (1, 2), value=3.0), normal()),
    case("constant_pad_nd.default", lambda x: torch.constant_pad_nd(x, (1, -1, 0, 2), 1.5), normal()),
    case("reflection_pad1d.default", lambda x: torch.ops.aten.reflection_pad1d(x, [1, 2]), normal(2, 6)),
    case("reflection_pad2d.default", lambda x: torch.ops.aten.reflection_pad2d(x, [1, 2, 0, 1]), normal(2, 4, 6)),
    case("replication_pad1d.default", lambda x: torch.ops.aten.replication_pad1d(x, [1, 2]), normal(2, 6)),
    case("replication_pad2d.default", lambda x: torch.ops.aten.replication_pad2d(x, [1, 2, 0, 1]), normal(1, 2, 4, 6)),
    case("pad.default", lambda x: F.pad(x, (1, 2), mode="circular"), normal(1, 2, 6), note="circular"),
]

CONSTANTS: list[Case] = [
    case("arange.default", lambda x: x + torch.arange(5), normal()),
    case("arange.start_step", lambda x: x + torch.arange(9, -1, -2), normal()),
    case("zeros.default", lambda x: torch.cat([x, torch.zeros(1, 5)]), normal()),
    case("ones.default", lambda x: torch.cat([x, torch.ones(1, 5)]), normal()),
    case("full.default", lambda x: torch.cat([x, torch.full((1, 5), 2.5)]), normal()),
    case("zeros_like.default", lambda x: torch.zeros_like(x), normal()),
    case("ones_like.default", lambda x: torch.ones_like(x, dtype=torch.int64), normal()),
    case("full_like.default", lambda x: torch.full_like(x, 2.5), normal()),
    case("new_zeros.default", lambda x: x.new_zeros(2, 3), normal()),
]
