"""Symbolic sizes: names of the symbols, and bound records that equal static ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torch_pim.features.extent import UnboundSymbolError
from torch_pim.features.nest import LoopNest
from torch_pim.features.vector import nest_values

SIZES = {"a0.d0": 256, "a0.d1": 512, "a1.d0": 512, "a1.d1": 128, "a2.d0": 256, "a2.d1": 128}


def anonymous(nest: LoopNest) -> LoopNest:
    return replace(nest, name="", code_hash="")


def test_bound_dynamic_matmul_is_the_static_one(nest_of):
    bound = nest_of("matmul_dynamic").at(SIZES)
    static = nest_of("matmul")
    assert anonymous(bound) == anonymous(static)
    assert bound.feature_hash == static.feature_hash
    assert nest_values(bound) == nest_values(static)


def test_symbols_are_named_after_parameters(nest_of):
    assert nest_of("matmul_dynamic").symbols == set(SIZES)
    assert nest_of("strided_parameters").symbols == {"a1.s0"}
    assert nest_of("cache_update").symbols == {"a0.d0"}
    assert nest_of("matmul").symbols == frozenset()


def test_strides_of_strided_parameters(nest_of):
    load, store = nest_of("strided_parameters").at({"a1.s0": 100}).accesses
    assert dict(load.byte_strides) == {0: 256, 1: 4}
    assert dict(store.byte_strides) == {0: 400, 1: 4}


def test_missing_binding_is_named(nest_of):
    with pytest.raises(UnboundSymbolError, match=r"a1\.d1"):
        nest_of("matmul_dynamic").at({name: size for name, size in SIZES.items() if name != "a1.d1"})


def test_symbolic_nest_has_no_vector(nest_of):
    with pytest.raises(UnboundSymbolError, match="symbolic"):
        nest_values(nest_of("matmul_dynamic"))


def test_empty_dimension_gives_an_empty_nest(nest_of):
    empty = nest_of("matmul_dynamic").at({**SIZES, "a0.d0": 0, "a2.d0": 0})
    assert empty.parallel_trip == 0
    assert all(value == value for value in nest_values(empty))
