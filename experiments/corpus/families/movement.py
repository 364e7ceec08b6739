"""Data movement: gathers, scatters, transposes, copies and scans."""

from __future__ import annotations

import torch
from torch.nn import functional

from torch_pim.experiments.corpus.design import Point
from torch_pim.experiments.corpus.entry import ArgumentSpec, index
from torch_pim.experiments.corpus.family import Family, same, shaped

T = torch.Tensor
VECTOR = ((1 << 10, 16 << 20),)
TABLE = ((1024, 1_000_000), (4, 1024), (16, 65536))
MATRIX = ((64, 12288), (64, 12288))


def embedding(table: T, rows: T) -> T:
    return functional.embedding(rows, table)


def gather_elements(x: T, positions: T) -> T:
    return torch.gather(x, 0, positions)


def pooled_embedding(table: T, rows: T) -> T:
    return functional.embedding(rows, table).sum(1)


def sparse_matrix_vector(values: T, columns: T, x: T) -> T:
    """A sparse matrix in ELLPACK form (fixed number of entries per row) times a vector."""
    return (values * x[columns]).sum(1)


def gather_scaled(table: T, rows: T, scale: T) -> T:
    return table[rows] * scale


def index_add(x: T, rows: T, source: T) -> T:
    return x.index_add(0, rows, source)


def index_put(x: T, rows: T, source: T) -> T:
    return x.index_put((rows,), source)


def scatter_add(x: T, positions: T, source: T) -> T:
    return x.scatter_add(0, positions, source)


def transpose(x: T) -> T:
    return x.t().contiguous()


def transposed_add(x: T, y: T) -> T:
    return x.t() + y


def swap_heads(x: T) -> T:
    return x.permute(0, 2, 1, 3).contiguous()


def channels_last(x: T) -> T:
    return x.permute(0, 2, 3, 1).contiguous()


def concatenate(x: T, y: T) -> T:
    return torch.cat([x, y])


def append(cache: T, new: T) -> T:
    return torch.cat([cache, new], 2)


def pad(x: T) -> T:
    return functional.pad(x, (3, 5, 2, 2))


def repeat_heads(x: T) -> T:
    return x[:, :, None].expand(-1, -1, 4, -1, -1).flatten(1, 2)


def flip(x: T) -> T:
    return x.flip(0)


def roll(x: T) -> T:
    return x.roll(3, 0)


def stride_slice(x: T) -> T:
    return x[:, ::3] * 2.0


def interleave(x: T, y: T) -> T:
    return torch.stack([x, y], -1).flatten(-2)


def rotate_half(x: T, cosine: T, sine: T) -> T:
    """Rotary position embedding (Su et al., 2021) in its half-split form."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


def lower_triangle(x: T) -> T:
    return x.tril()


def positions_like(x: T) -> T:
    """Values made from the loop counters alone, scaled by one loaded element."""
    return torch.arange(x.shape[1], dtype=torch.float32)[None, :] * x[:, :1]


def scan_rows(x: T) -> T:
    return x.cumsum(-1)


def scan_columns(x: T) -> T:
    return x.cumsum(0)


def _gather(p: Point) -> tuple[ArgumentSpec, ...]:
    return (ArgumentSpec((p[0], p[1])), index((p[2],), p[0]))


def _scatter(p: Point) -> tuple[ArgumentSpec, ...]:
    return (ArgumentSpec((p[0], p[1])), index((p[2],), p[0]), ArgumentSpec((p[2], p[1])))


FAMILIES = (
    Family("embedding", "gather", embedding, _gather, TABLE, 10, 5),
    Family(
        "gather-elements",
        "gather",
        gather_elements,
        lambda p: (ArgumentSpec((p[0],)), index((p[1],), p[0])),
        ((1 << 12, 16 << 20), (1 << 10, 1 << 20)),
        7,
    ),
    Family(
        "gather-scaled",
        "gather",
        gather_scaled,
        lambda p: (*_gather(p), ArgumentSpec((p[2], 1))),
        TABLE,
        7,
    ),
    Family(
        "pooled-embedding",
        "gather-reduction",
        pooled_embedding,
        lambda p: (ArgumentSpec((p[0], p[1])), index((p[2], p[3]), p[0])),
        ((1024, 1_000_000), (8, 256), (16, 4096), (4, 64)),
        8,
    ),
    Family(
        "sparse-matrix-vector",
        "gather-reduction",
        sparse_matrix_vector,
        lambda p: (ArgumentSpec((p[0], p[1])), index((p[0], p[1]), p[2]), ArgumentSpec((p[2],))),
        ((256, 262144), (4, 64), (1024, 4 << 20)),
        8,
    ),
    Family("index-add", "scatter", index_add, _scatter, ((1024, 262144), (1, 256), (64, 16384)), 6),
    Family("index-put", "scatter", index_put, _scatter, ((1024, 262144), (1, 256), (64, 16384)), 5),
    Family(
        "scatter-add",
        "scatter",
        scatter_add,
        lambda p: (ArgumentSpec((p[0],)), index((p[1],), p[0]), ArgumentSpec((p[1],))),
        ((1 << 12, 4 << 20), (1 << 10, 1 << 18)),
        5,
    ),
    Family("transpose", "transpose", transpose, shaped(same), MATRIX, 8, 4),
    Family("transposed-add", "transpose", transposed_add, shaped(same, lambda p: p[::-1]), MATRIX, 7),
    Family("swap-heads", "transpose", swap_heads, shaped(same), ((1, 16), (16, 2048), (4, 48), (16, 256)), 8, 5),
    Family(
        "channels-last",
        "transpose",
        channels_last,
        shaped(lambda p: (p[0], p[1], p[2], p[2])),
        ((1, 16), (8, 512), (7, 112)),
        6,
    ),
    Family("concatenate", "copy", concatenate, shaped(same, same), VECTOR, 6),
    Family(
        "append",
        "copy",
        append,
        shaped(same, lambda p: (p[0], p[1], 1, p[3])),
        ((1, 8), (4, 48), (64, 4096), (16, 256)),
        7,
        4,
    ),
    Family("pad", "copy", pad, shaped(same), MATRIX, 6),
    Family("repeat-heads", "copy", repeat_heads, shaped(same), ((1, 4), (2, 16), (64, 2048), (16, 256)), 6),
    Family("flip", "copy", flip, shaped(same), VECTOR, 6),
    Family("roll", "copy", roll, shaped(same), VECTOR, 6),
    Family("stride-slice", "copy", stride_slice, shaped(same), MATRIX, 6),
    Family("interleave", "copy", interleave, shaped(same, same), MATRIX, 6),
    Family(
        "rotate-half",
        "rotary",
        rotate_half,
        shaped(lambda p: (1, p[0], p[1], 2 * p[2]), lambda p: (1, 1, p[1], 2 * p[2]), lambda p: (1, 1, p[1], 2 * p[2])),
        ((4, 48), (1, 2048), (8, 128)),
        7,
        4,
    ),
    Family("lower-triangle", "counter", lower_triangle, shaped(same), ((64, 6144), (64, 6144)), 6),
    Family("positions-like", "counter", positions_like, shaped(same), ((16, 4096), (16, 4096)), 6),
    Family("scan-rows", "scan", scan_rows, shaped(same), ((4, 2048), (64, 32768)), 6),
    Family("scan-columns", "scan", scan_columns, shaped(same), ((64, 16384), (4, 2048)), 6),
)
