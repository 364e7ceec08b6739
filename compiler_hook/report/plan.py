"""The plan of one program: every call with its decision, and the counts a reader asks for first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from torch_pim.compiler_hook.compiled_graph import PlacedProgram
from torch_pim.compiler_hook.outline.specialised_program import BoundArgument, BufferView, SpecialisedProgram
from torch_pim.features.analysis.contractions import contractions
from torch_pim.features.analysis.facts import nest_facts
from torch_pim.features.analysis.footprint import buffer_extents
from torch_pim.features.nest import ELEMENT_BYTES, LoopNest, NestKind
from torch_pim.features.placement import Decision, Side


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One call in program order."""

    call: int
    nest: str
    kind: NestKind
    site: str
    aten_operators: tuple[str, ...]
    parallel_trip: int
    flops: float
    footprint_bytes: float
    side: Side
    stage: str
    policy: str
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The placement of one program on one (host, device) pair."""

    name: str
    host: str
    device: str
    policy: str
    fingerprint: str
    calls: int
    unique_nests: int
    copies: int
    fills: int
    not_partitionable: int
    on_pim: int
    switches: int
    """Changes of side between consecutive calls, counting start and end on the host."""
    contraction_flops: float
    """Two per multiply-add, over all calls of contraction nests."""
    weight_bytes_read: float
    """Bytes of resident weights that the calls touch, each weight once."""
    stages: Mapping[str, int]
    """Calls per stage that decided them."""
    entries: tuple[PlanEntry, ...]


def plan_of(placed: PlacedProgram) -> Plan:
    program, problem, placement = placed.specialised, placed.problem, placed.placement
    nests = [nest.loop_nest for nest in program.nests]
    entries = tuple(
        _entry(number, nests[call.nest], call.site, decision)
        for number, (call, decision) in enumerate(zip(program.calls, placement.decisions, strict=True))
    )
    kinds = Counter(entry.kind for entry in entries)
    return Plan(
        name=program.program.name,
        host=problem.host.name,
        device=problem.device.name,
        policy=placement.policy,
        fingerprint=placement.fingerprint,
        calls=len(entries),
        unique_nests=len(nests),
        copies=kinds["copy"],
        fills=kinds["fill"],
        not_partitionable=sum(not nests[call.nest].partitionable for call in program.calls),
        on_pim=sum(entry.side == "pim" for entry in entries),
        switches=switches([entry.side for entry in entries]),
        contraction_flops=contraction_flops(program),
        weight_bytes_read=weight_bytes_read(program, placed.weights),
        stages=dict(sorted(Counter(entry.stage for entry in entries).items())),
        entries=entries,
    )


def switches(sides: Sequence[Side]) -> int:
    """Changes of side along the plan; it starts and ends on the host."""
    path: list[Side] = ["host", *sides, "host"]
    return sum(a != b for a, b in pairwise(path))


def contraction_flops(program: SpecialisedProgram) -> float:
    """Two floating-point operations per multiply-add of every contraction, over all calls."""
    per_nest = [sum(2.0 * contraction.macs for contraction in contractions(nest.loop_nest)) for nest in program.nests]
    return sum(per_nest[call.nest] for call in program.calls)


def weight_bytes_read(program: SpecialisedProgram, weights: frozenset[int]) -> float:
    """Bytes of weights that the program touches: whole buffers, except rows that are only gathered."""
    touched: dict[int, float] = {}
    for call in program.calls:
        loaded = _loaded_bytes(program.nests[call.nest].loop_nest)
        for position, argument in enumerate(call.arguments):
            view = argument.value
            if not argument.loaded or not isinstance(view, BufferView):
                continue
            root = program.roots[view.root]
            if root.kind == "parameter" and root.parameter in weights:
                nbytes = loaded.get(_buffer_number(call.arguments, position), 0.0)
                touched[view.root] = min(float(root.nbytes), touched.get(view.root, 0.0) + nbytes)
    return sum(touched.values())


@lru_cache(maxsize=1024)
def _loaded_bytes(nest: LoopNest) -> Mapping[int, float]:
    """Distinct bytes that one execution loads, by buffer."""
    loads = [access for access in nest.accesses if access.kind == "load"]
    extents = buffer_extents(nest, loads, frozenset(range(len(nest.loops))))
    return {number: e.elements * ELEMENT_BYTES[nest.buffers[number].element_type] for number, e in extents.items()}


def _buffer_number(arguments: Sequence[BoundArgument], position: int) -> int:
    """Buffers of a nest record are its memref parameters in order."""
    return sum(isinstance(a.value, BufferView) for a in arguments[:position])


def _entry(number: int, nest: LoopNest, site: str, decision: Decision) -> PlanEntry:
    facts = nest_facts(nest)
    return PlanEntry(
        call=number,
        nest=nest.name,
        kind=nest.kind,
        site=site,
        aten_operators=nest.aten_operators,
        parallel_trip=facts.parallel_trip,
        flops=facts.flops,
        footprint_bytes=facts.footprint.touched_bytes,
        side=decision.side,
        stage=decision.stage,
        policy=decision.policy,
        score=decision.score,
        reason=decision.reason,
    )
