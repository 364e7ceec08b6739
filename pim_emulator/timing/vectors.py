"""SIMD lanes and register blocking of tuned code, on either side."""

from __future__ import annotations

import numpy as np

from torch_pim.pim_emulator.timing.nest_time import Floats
from torch_pim.pim_emulator.timing.table import NestTable

REGISTER_ROWS, REGISTER_COLUMNS = 4, 2
"""Register tile of a contraction: rows of one operand times vectors of the other, within 16 vector registers."""


def lane_factor(table: NestTable, lanes_f32: int) -> Floats:
    """Vector instructions per scalar instruction: 1 without lanes, 1 / lanes for code that vectorises completely.

    Half precision is computed in f32, so it gets no more lanes; 8-byte types fill a vector with half as many. Register
    transposes take as many instructions again as the work that they serve.
    """
    halved = 1.0 / max(1.0, lanes_f32 / 2.0)
    vector = (1.0 - table.wide_share) / lanes_f32 + table.wide_share * halved
    shuffled = np.minimum(1.0, 2.0 * vector)
    scalar = 1.0 - table.vector_share - table.shuffled_share
    result: Floats = scalar + table.vector_share * vector + table.shuffled_share * shuffled
    return result


def loads_of_tuned_code(table: NestTable) -> Floats:
    """Loads left when contractions keep a tile in registers: 1 / rows + 1 / columns of them per multiply-add.

    A matrix-vector product has only one dimension to tile: each element of the matrix is loaded.
    """
    c = table.contractions
    rows = np.minimum(REGISTER_ROWS, np.maximum(c.m, c.n))
    columns = np.minimum(REGISTER_COLUMNS, np.minimum(c.m, c.n))
    tiled = table.of_contractions(c.macs * np.minimum(2.0, 1.0 / rows + 1.0 / columns))
    result: Floats = table.loads + tiled
    return result
