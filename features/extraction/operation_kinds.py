"""How each arithmetic operation is counted: its kinds and how many of each, by the name of the MLIR operation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def _table(groups: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: kind for kind, names in groups.items() for name in names.split()})


ONE_OPERATION: Mapping[str, str] = _table({
    "add": "arith.addf arith.subf arith.negf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf "
    "arith.addi arith.subi arith.maxsi arith.minsi arith.maxui arith.minui arith.addui_extended "
    "math.absf math.absi math.copysign math.floor math.ceil math.round math.roundeven math.trunc",
    "multiply": "arith.mulf arith.muli arith.mulsi_extended arith.mului_extended",
    "divide": "arith.divf arith.remf arith.divsi arith.divui arith.remsi arith.remui arith.floordivsi "
    "arith.ceildivsi arith.ceildivui",
    "square_root": "math.sqrt",
    "transcendental": "math.exp math.exp2 math.expm1 math.log math.log2 math.log10 math.log1p math.sin math.cos "
    "math.tan math.asin math.acos math.atan math.atan2 math.sinh math.cosh math.tanh math.asinh math.acosh "
    "math.atanh math.erf math.erfc math.powf math.fpowi math.ipowi math.cbrt",
    "compare": "arith.cmpf arith.cmpi math.isnan math.isinf math.isfinite math.isnormal",
    "select": "arith.select",
    "convert": "arith.extf arith.truncf arith.sitofp arith.uitofp arith.fptosi arith.fptoui arith.extsi arith.extui "
    "arith.trunci arith.bitcast",
    "logic": "arith.andi arith.ori arith.xori arith.shli arith.shrsi arith.shrui math.ctlz math.cttz math.ctpop",
})  # fmt: skip
"""Operations that count as one of their kind. Powers count as one transcendental function."""

SEVERAL_OPERATIONS: Mapping[str, tuple[tuple[str, int], ...]] = MappingProxyType({
    "math.fma": (("multiply", 1), ("add", 1)),
    "math.rsqrt": (("square_root", 1), ("divide", 1)),
    "math.clampf": (("add", 2),),
    "math.sincos": (("transcendental", 2),),
})  # fmt: skip

INDEX_DIVISIONS = frozenset({
    "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi",
    "arith.ceildivui",
})  # fmt: skip
"""Divisions and remainders, which index arithmetic counts apart."""

CONSTANT_DIVISION_OPERATIONS = 4
"""A division of an index by a constant becomes multiply, shift, multiply back and subtract in machine code."""

FREE_OPERATIONS = frozenset({
    "arith.constant", "ub.poison", "memref.dim", "memref.rank", "memref.alloc", "memref.alloca", "memref.dealloc",
    "memref.get_global", "cf.assert", "scf.yield", "scf.reduce.return", "scf.condition", "func.return",
    "memref.alloca_scope.return", "memref.atomic_yield",
})  # fmt: skip
"""Operations that cost nothing in a compiled loop, or that run once; run-time checks (`cf.assert`) are left out."""


def counted(name: str, element_type: str, divides_by_constant: bool) -> tuple[tuple[str, int], ...]:
    """(kind, count) pairs of one operation on values of one element type.

    Index arithmetic is `address`, except for comparisons, selects and divisions by unknown numbers, which cost what
    they cost on data. Operations that are in no table count as one `other`.
    """
    kind = ONE_OPERATION.get(name)
    if element_type == "index":
        if name in INDEX_DIVISIONS:
            return (("address", CONSTANT_DIVISION_OPERATIONS),) if divides_by_constant else (("divide", 1),)
        return ((kind, 1),) if kind in ("compare", "select") else (("address", 1),)
    if kind is not None:
        return ((kind, 1),)
    return SEVERAL_OPERATIONS.get(name, (("other", 1),))
