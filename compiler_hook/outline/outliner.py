"""A lowered function to a Program: steps in order, each unique nest once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.lowering.passes import entry_block, walk
from torch_pim.compiler_hook.lowering.residue import SPILL
from torch_pim.compiler_hook.lowering.views import VIEWS, defining_op
from torch_pim.compiler_hook.outline.globals import global_tensor
from torch_pim.compiler_hook.outline.memref_types import parameter_of
from torch_pim.compiler_hook.outline.nest_builder import BuiltNest, build_nest
from torch_pim.compiler_hook.outline.nest_function import NestFunction
from torch_pim.compiler_hook.outline.program import (
    Allocate,
    Argument,
    Check,
    Compute,
    Dimension,
    Invoke,
    LoadScalar,
    Operand,
    Program,
    Slot,
    Step,
    StoreScalar,
)
from torch_pim.compiler_hook.outline.scalar_ops import SUPPORTED
from torch_pim.compiler_hook.outline.view_steps import view_step
from torch_pim.features.extraction import ExtractionError, extract_loop_nest

_ORIGIN = re.compile(r'"([^"@]+)@([^"@]+)"')


def outline(function: ir.OpView) -> Program:
    """Program of a function in canonical form (see linalg_to_loops); LoweringError names what it cannot take."""
    return _Outliner(function).run()


class _Outliner:
    def __init__(self, function: ir.OpView) -> None:
        self.function = function
        self.block = entry_block(function)
        self.slots: dict[ir.Value, Slot] = {}
        self.steps: list[Step] = []
        self.functions: dict[str, int] = {}
        self.unique: list[NestFunction] = []
        self.origins: list[tuple[dict[str, None], list[str]]] = []

    def run(self) -> Program:
        arguments = list(self.block.arguments)
        for argument in arguments:
            self._new_slot(argument)
        results: tuple[Operand, ...] = ()
        result_types: tuple[ir.Type, ...] = ()
        for view in self.block.operations:
            op = view.operation
            if op.name in ("func.return", "return"):
                results = tuple(self._result(v) for v in op.operands)
                result_types = tuple(v.type for v in op.operands)
            else:
                self._step(op)
        return Program(
            name=ir.StringAttr(self.function.operation.attributes["sym_name"]).value,
            parameters=tuple(parameter_of(a.type) for a in arguments),
            steps=tuple(self.steps),
            results=results,
            result_types=tuple(parameter_of(t) for t in result_types),
            functions=tuple(
                replace(
                    unique,
                    loop_nest=replace(
                        unique.loop_nest,
                        aten_operators=tuple(operators),
                        call_sites=tuple(sites),
                        multiplicity=len(sites),
                    ),
                )
                for unique, (operators, sites) in zip(self.unique, self.origins, strict=True)
            ),
        )

    def _new_slot(self, value: ir.Value) -> Slot:
        slot = Slot(len(self.slots))
        self.slots[value] = slot
        return slot

    def _operand(self, value: ir.Value) -> Operand:
        slot = self.slots.get(value)
        if slot is not None:
            return slot
        op = defining_op(value)
        if op is not None and op.name == "arith.constant":
            return constant_value(op)
        raise LoweringError(f"value of {op.name if op is not None else 'a block argument'} is used before it exists")

    def _result(self, value: ir.Value) -> Operand:
        """The value's operand; for a scalar that a nest computes, the one-element buffer that holds it."""
        op = defining_op(value)
        return self._memref(op.operands[0]) if op is not None and SPILL in op.attributes else self._operand(value)

    def _memref(self, value: ir.Value) -> Slot:
        operand = self._operand(value)
        assert isinstance(operand, Slot)
        return operand

    def _step(self, op: ir.Operation) -> None:
        if op.name in ("scf.parallel", "scf.execute_region"):
            self._invoke(op)
        elif op.name in VIEWS:
            self.steps.append(view_step(op, self._operand, lambda: self._new_slot(op.results[0])))
        elif op.name in _STEPS:
            step = _STEPS[op.name](self, op)
            if step is not None:
                self.steps.append(step)
        elif op.name in SUPPORTED:
            self.steps.append(self._compute(op))
        else:
            raise LoweringError(f"operation {op.name} at function level is not supported")

    def _invoke(self, op: ir.Operation) -> None:
        built = build_nest(op)
        operators, nodes = origins(op)
        number = self.functions.get(built.code_hash)
        if number is None:
            number = self._register(built)
        known, sites = self.origins[number]
        known.update(dict.fromkeys(operators))
        site = "+".join(nodes) or f"call_{sum(isinstance(s, Invoke) for s in self.steps)}"
        sites.append(site)
        arguments = tuple(
            Argument(self._operand(value), loaded, stored)
            for value, loaded, stored in zip(built.values, built.loaded, built.stored, strict=True)
        )
        self.steps.append(Invoke(number, arguments, site))

    def _register(self, built: BuiltNest) -> int:
        number = len(self.unique)
        self.functions[built.code_hash] = number
        try:
            nest = extract_loop_nest(built.function, name=f"nest_{number}", code_hash=built.code_hash)
        except ExtractionError as error:
            raise LoweringError(f"no record can be made of a nest: {error}") from error
        self.unique.append(NestFunction(built.code_hash, built.canonical, built.parameters, nest))
        self.origins.append(({}, []))
        return number

    def _compute(self, op: ir.Operation) -> Step:
        operands = tuple(self._operand(v) for v in op.operands)
        types = str(op.operands[0].type), str(op.results[0].type)
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value if "predicate" in op.attributes else 0
        return Compute(op.name, self._new_slot(op.results[0]), operands, *types, predicate)

    def _allocate(self, op: ir.Operation) -> Step:
        memref = ir.MemRefType(op.results[0].type)
        dynamic = iter(op.operands)
        sizes = tuple(
            self._operand(next(dynamic)) if memref.is_dynamic_dim(i) else int(memref.shape[i])
            for i in range(memref.rank)
        )
        return Allocate(self._new_slot(op.results[0]), str(memref.element_type), sizes)

    def _dimension(self, op: ir.Operation) -> Step:
        source, dimension = self._memref(op.operands[0]), self._operand(op.operands[1])
        return Dimension(self._new_slot(op.results[0]), source, dimension)

    def _load(self, op: ir.Operation) -> Step | None:
        if SPILL in op.attributes:
            return None
        source, *indices = op.operands
        operands = tuple(self._operand(v) for v in indices)
        return LoadScalar(self._new_slot(op.results[0]), self._memref(source), operands)

    def _store(self, op: ir.Operation) -> Step:
        value, target, *indices = op.operands
        return StoreScalar(self._operand(value), self._memref(target), tuple(self._operand(v) for v in indices))

    def _check(self, op: ir.Operation) -> Step:
        return Check(self._operand(op.operands[0]), ir.StringAttr(op.attributes["msg"]).value)

    def _global(self, op: ir.Operation) -> Step:
        return global_tensor(op, self._new_slot(op.results[0]))

    def _nothing(self, op: ir.Operation) -> Step | None:
        return None


_STEPS: dict[str, Callable[[_Outliner, ir.Operation], Step | None]] = {
    "memref.alloc": _Outliner._allocate,
    "memref.alloca": _Outliner._allocate,
    "memref.dim": _Outliner._dimension,
    "memref.load": _Outliner._load,
    "memref.store": _Outliner._store,
    "memref.get_global": _Outliner._global,
    "cf.assert": _Outliner._check,
    "arith.constant": _Outliner._nothing,
    "memref.dealloc": _Outliner._nothing,
}


def constant_value(op: ir.Operation) -> int | float:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.FloatAttr):
        return float(attribute.value)
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    raise LoweringError(f"constant {attribute} at function level is not supported")


def origins(op: ir.Operation) -> tuple[list[str], list[str]]:
    """(ATen operators, graph nodes) that the operations of a nest come from, in the order in which they compute."""
    operators: dict[str, None] = {}
    nodes: dict[str, None] = {}
    inside = walk(op)
    # Loads and stores carry the place of the last operator that was fused into them, so they come second.
    arithmetic = [inner for inner in inside if inner.name.startswith(("arith.", "math."))]
    for text in dict.fromkeys([*map(_place, arithmetic), *map(_place, inside)]):
        for operator, node in _ORIGIN.findall(text):
            operators.setdefault(operator)
            nodes.setdefault(node)
    return list(operators), list(nodes)


def _place(op: ir.Operation) -> str:
    """Location of an operation; bodies of named linalg operations have none, but the loop around them has."""
    place = str(op.location)
    return str(op.parent.operation.location) if place == "loc(unknown)" and op.parent is not None else place
