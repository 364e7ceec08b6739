"""Addresses of a record against a run of the same function, operation by operation."""

from __future__ import annotations

import pytest
from torch_mlir import ir

NESTS = [
    "cumulative_sum",
    "fill",
    "memref_copy_by_hand",
    "nested_parallel",
    "rotary",
    "sibling_trees",
    "transpose",
    "views",
    "windows",
]

ARITHMETIC = {
    "arith.addi": lambda x, y: x + y,
    "arith.subi": lambda x, y: x - y,
    "arith.muli": lambda x, y: x * y,
    "arith.divui": lambda x, y: x // y,
    "arith.remui": lambda x, y: x % y,
}


class Run:
    """Interprets index arithmetic, loops and views; data values stay unknown. Collects (buffer, byte address)."""

    def __init__(self, function) -> None:
        self.numbers: dict[ir.Value, int] = {}
        self.buffers: dict[ir.Value, int] = {}
        self.count = 0
        self.accesses: list[tuple[str, int, int]] = []
        for argument in function.arguments:
            self._buffer(argument)
        self.block(function.regions[0].blocks[0])

    def _buffer(self, value) -> None:
        if isinstance(value.type, ir.MemRefType) and value not in self.buffers:
            self.buffers[value] = self.count
            self.count += 1

    def block(self, block) -> None:
        for op in block.operations:
            self.visit(op.operation)

    def visit(self, op) -> None:
        if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
            self.numbers[op.results[0]] = op.attributes["value"].value
        elif op.name in ARITHMETIC and all(operand in self.numbers for operand in op.operands):
            self.numbers[op.results[0]] = ARITHMETIC[op.name](*(self.numbers[operand] for operand in op.operands))
        elif op.name in ("scf.for", "scf.parallel"):
            self.loop(op, list(op.regions[0].blocks[0].arguments), [])
        elif op.name in ("memref.alloca", "memref.alloc"):
            self._buffer(op.results[0])
        elif op.name == "memref.load":
            self.access("load", op.operands[0], list(op.operands)[1:])
        elif op.name == "memref.store":
            self.access("store", op.operands[1], list(op.operands)[2:])

    def loop(self, op, arguments, bound) -> None:
        rank = len(arguments)
        if len(bound) == rank:
            self.block(op.regions[0].blocks[0])
            return
        place = len(bound)
        lower, upper, step = (self.numbers[op.operands[place + part * rank]] for part in range(3))
        for number in range(lower, upper, step):
            self.numbers[arguments[place]] = number
            self.loop(op, arguments, [*bound, number])

    def access(self, kind, memref, indices) -> None:
        """Address from offset and strides that the type of the view states, relative to the buffer's start."""
        kept = memref
        while not isinstance(kept.owner, ir.Block) and kept.owner.operation.name == "memref.cast":
            kept = kept.owner.operation.operands[0]
        strides, offset = kept.type.get_strides_and_offset()
        root = kept
        while root not in self.buffers:
            root = root.owner.operation.operands[0]
        element = offset + sum(s * self.numbers[i] for s, i in zip(strides, indices, strict=True))
        width = {"f32": 4, "i64": 8}[str(kept.type.element_type)]
        self.accesses.append((kind, self.buffers[root], element * width))


@pytest.mark.parametrize("name", NESTS)
def test_every_address(nest_of, nest_text, trace_of, name):
    nest = nest_of(name)
    with ir.Context():
        module = ir.Module.parse(nest_text(name))
        run = Run(module.body.operations[0])
    recorded = [(access.kind, access.buffer, address) for access, address in trace_of(nest)]
    starts: dict[int, int] = {}
    for _, buffer, address in recorded:
        starts.setdefault(buffer, address)
    origins: dict[int, int] = {}
    for _, buffer, address in run.accesses:
        origins.setdefault(buffer, address)
    assert [(kind, buffer, address - starts[buffer]) for kind, buffer, address in recorded] == [
        (kind, buffer, address - origins[buffer]) for kind, buffer, address in run.accesses
    ]
