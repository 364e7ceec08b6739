"""What well compiled code makes of a nest: accesses left after register blocking, vector lanes, fused multiply-adds.

Both sides are assumed to run such code: accumulators and reused operands stay in registers, and the vector loop is
chosen among all loops around a body, because interchange can bring it innermost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch_pim.features.analysis.contractions import moved_by
from torch_pim.features.analysis.vectorisation import vectorises
from torch_pim.features.analysis.work import trip
from torch_pim.features.nest import ELEMENT_BYTES, NO_LOOP, Access, LoopNest
from torch_pim.models.cost_model.parallelism import largest_share

REGISTER_BLOCK = 4
"""Iterations of a loop that share one load of a value which the loop does not move (unroll-and-jam; Callahan, Carr
and Kennedy, 1990)."""


def executions_after_blocking(nest: LoopNest, access: Access) -> float:
    """How often an access is executed when reused values stay in registers.

    Innermost sequential loops that do not move it cost nothing: the value is an accumulator or was hoisted. Of the
    other loops that do not move it, up to REGISTER_BLOCK iterations share one load; stores are not shared.
    """
    path = list(nest.enclosing(access.loop))
    moved = moved_by(nest, access)
    while path and nest.loops[path[-1]].kind == "sequential" and path[-1] not in moved:
        path.pop()
    executed = math.prod(trip(nest, loop) for loop in path) * access.probability
    if access.kind == "store":
        return executed
    shared = math.prod(trip(nest, loop) for loop in path if loop not in moved)
    return executed / max(1, min(shared, REGISTER_BLOCK))


def lanes(nest: LoopNest, loop: int, body: Sequence[Access], f32_lanes: int, cores: int) -> float:
    """SIMD lanes that the body of `loop` fills on average, at least 1; double precision has half as many.

    The best vector loop among those around the body is taken; its last vector may be partly empty, and of a parallel
    loop a core only has its own share.
    """
    if loop == NO_LOOP or not body:
        return 1.0
    widest = max(1, f32_lanes * 4 // max(4, *(ELEMENT_BYTES[a.element_type] for a in body)))
    best = 1.0
    for candidate in nest.enclosing(loop):
        count = trip(nest, candidate)
        if candidate < nest.parallel_rank:
            count = min(count, largest_share(nest, cores))
        if count > 0 and vectorises(list(body), candidate):
            best = max(best, count / math.ceil(count / widest))
    return best
