"""Made-up arguments: layout, contents, and bounds of index data."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from torch_pim.compiler_hook.codegen.arguments import FILLED_BYTES, BufferPool, allocate_arguments
from torch_pim.compiler_hook.codegen.index_bounds import index_bounds
from torch_pim.compiler_hook.codegen.kernel import Argument
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.codegen.memref import NUMPY_TYPES, MemRefValue
from torch_pim.compiler_hook.outline.nest_function import (
    ConcreteNest,
    ConcreteParameter,
    MemRefParameter,
    NestFunction,
)

SCATTERED = """
func.func @nest(%n: index, %ids: memref<?xi64>, %table: memref<?x?x{t}>, %mask: memref<?xi1>,
                %counts: memref<?xi32>, %o: memref<?x?x{t}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %columns = memref.dim %o, %c1 : memref<?x?x{t}>
  %rows = memref.dim %table, %c0 : memref<?x?x{t}>
  %rows64 = arith.index_cast %rows : index to i64
  scf.parallel (%r, %c) = (%c0, %c0) to (%n, %columns) step (%c1, %c1) {{
    %id = memref.load %ids[%r] : memref<?xi64>
    {index}
    %v = memref.load %table[%k, %c] : memref<?x?x{t}>
    %m = memref.load %mask[%r] : memref<?xi1>
    %q = memref.load %counts[%r] : memref<?xi32>
    %s = arith.select %m, %v, %v : {t}
    memref.store %s, %o[%r, %c] : memref<?x?x{t}>
    scf.reduce
  }}
  return
}}"""

DIRECT = "%k = arith.index_cast %id : i64 to index"
WRAPPED = """
    %negative = arith.cmpi slt, %id, %zero : i64
    %wrapped = arith.addi %id, %rows64 : i64
    %sure = arith.select %negative, %wrapped, %id : i64
    %k = arith.index_cast %sure : i64 to index"""
COMPUTED = """
    %double = arith.addi %id, %id : i64
    %k = arith.index_cast %double : i64 to index"""


def concrete(function: NestFunction, *shapes: tuple[int, ...] | int, offset: int = 0) -> ConcreteNest:
    parameters = []
    bindings: dict[str, int] = {}
    for position, (parameter, shape) in enumerate(zip(function.parameters, shapes, strict=True)):
        if isinstance(shape, int):
            parameters.append(ConcreteParameter(parameter.element_type, (), (), 0, True, shape))
            bindings[f"a{position}"] = shape
            continue
        assert isinstance(parameter, MemRefParameter)
        strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        parameters.append(ConcreteParameter(parameter.element_type, shape, strides, offset))
        bindings |= {f"a{position}.d{i}": size for i, size in enumerate(shape)}
    nest = function.loop_nest.at({symbol: bindings[symbol] for symbol in function.loop_nest.symbols})
    return ConcreteNest(function, nest, tuple(parameters))


def contents(argument: Argument) -> np.ndarray:
    """The elements of a contiguous buffer, copied."""
    assert isinstance(argument, MemRefValue)
    dtype = NUMPY_TYPES[argument.element_type]
    count = int(np.prod(argument.shape))
    raw = ctypes.string_at(argument.pointer + argument.offset * dtype.itemsize, count * dtype.itemsize)
    return np.frombuffer(raw, dtype).reshape(argument.shape).copy()


def scattered(make_nest, index: str = DIRECT, element: str = "f32") -> NestFunction:
    return make_nest(SCATTERED.format(index=index, t=element), ("a0", "a5.d1"))


@pytest.mark.parametrize(("index", "bound"), [(DIRECT, 10), (WRAPPED, 10), (COMPUTED, 1)])
def test_index_buffers_hold_valid_indices(make_nest, index, bound):
    nest = concrete(scattered(make_nest, index), 1000, (1000,), (10, 6), (1000,), (1000,), (1000, 6))
    assert index_bounds(nest.function, nest.parameters) == (None, bound, None, None, None, None)
    arguments = allocate_arguments(nest, 7)
    ids = contents(arguments[1])
    assert ids.min() == 0
    assert ids.max() == bound - 1
    assert abs(ids.mean() - (bound - 1) / 2) < 0.5
    kernel = KernelLibrary.compile([nest.function]).kernel(nest.function.code_hash).bind(arguments)
    kernel(0, kernel.iterations)
    np.testing.assert_array_equal(contents(arguments[5]), contents(arguments[2])[ids])


def test_contents_by_element_type(make_nest):
    nest = concrete(scattered(make_nest), 1000, (1000,), (10, 6), (1000,), (1000,), (1000, 6))
    scalar, _, table, mask, counts, _ = allocate_arguments(nest, 7)
    assert scalar == 1000
    assert set(contents(mask).view(np.uint8).tolist()) == {0, 1}
    assert (contents(counts) == 1).all()
    values = contents(table)
    assert values.min() >= -1
    assert values.max() < 1
    assert np.unique(values).size > 50


@pytest.mark.parametrize("element", ["f64", "f16", "bf16"])
def test_other_float_types(make_nest, element):
    nest = concrete(scattered(make_nest, element=element), 9, (9,), (10, 6), (9,), (9,), (9, 6))
    values = contents(allocate_arguments(nest, 0)[2]).astype(np.float64)
    assert np.isfinite(values).all()
    assert values.std() > 0.3


def test_equal_seeds_give_equal_contents_in_any_memory(make_nest):
    nest = concrete(scattered(make_nest), 1000, (1000,), (10, 6), (1000,), (1000,), (1000, 6))
    pool = BufferPool()
    first = [contents(a) for a in allocate_arguments(nest, 3, pool=pool)[1:]]
    other = concrete(scattered(make_nest, WRAPPED), 50, (50,), (99, 30), (50,), (50,), (50, 30))
    allocate_arguments(other, 4, pool=pool)
    second = [contents(a) for a in allocate_arguments(nest, 3, pool=pool)[1:]]
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left, right)
    different = contents(allocate_arguments(nest, 5)[1])
    assert (different != first[0]).any()


def test_buffers_are_aligned_apart_and_at_fixed_distances(make_nest):
    nest = concrete(scattered(make_nest), 1000, (1000,), (10, 6), (1000,), (1000,), (1000, 6))
    pool = BufferPool()
    layouts = []
    for _ in range(2):
        buffers = [a for a in allocate_arguments(nest, 0, pool=pool) if isinstance(a, MemRefValue)]
        assert all(b.pointer % 64 == 0 for b in buffers)
        ends = [b.pointer + contents(b).nbytes for b in buffers]
        assert all(end <= after.pointer for end, after in zip(ends[:-1], buffers[1:], strict=True))
        assert len({b.pointer % 4096 for b in buffers}) == len(buffers)
        layouts.append([b.pointer - buffers[0].pointer for b in buffers])
    assert layouts[0] == layouts[1]


def test_offsets_and_strides_have_room(make_nest):
    function = scattered(make_nest)
    nest = concrete(function, 4, (4,), (10, 6), (4,), (4,), (4, 6))
    table = ConcreteParameter("f32", (10, 6), (100, 2), 33)
    parameters = (*nest.parameters[:2], table, *nest.parameters[3:])
    wide = allocate_arguments(ConcreteNest(function, nest.loop_nest, parameters), 0)
    assert isinstance(wide[2], MemRefValue)
    assert (wide[2].offset, wide[2].strides) == (33, (100, 2))
    assert isinstance(wide[3], MemRefValue)
    assert wide[3].pointer - wide[2].pointer >= (33 + 9 * 100 + 5 * 2 + 1) * 4


def test_large_float_buffers_are_filled_on_demand(make_nest):
    rows = FILLED_BYTES // 4 // 6 + 100
    nest = concrete(scattered(make_nest), 4, (4,), (rows, 6), (4,), (4,), (4, 6))
    filled = contents(allocate_arguments(nest, 0, fill_all=True)[2])
    assert filled.std() > 0.5
    assert (filled[-1] != 0).all()


def test_empty_and_missing_buffers(make_nest):
    nest = concrete(scattered(make_nest), 0, (0,), (0, 6), (0,), (0,), (0, 6))
    kernel = KernelLibrary.compile([nest.function]).kernel(nest.function.code_hash)
    kernel.bind(allocate_arguments(nest, 0))(0, 0)


def test_addresses_that_pass_through_a_scratch_buffer_and_a_loop(make_nest):
    text = """
    func.func @nest(%starts: memref<9xi64>, %rows: memref<20xi32>, %scratch: memref<20xi64>, %x: memref<7xf32>,
                    %o: memref<8xf32>) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
        memref.store %zero, %o[%i] : memref<8xf32>
        %j = arith.addi %i, %c1 : index
        %first = memref.load %starts[%i] : memref<9xi64>
        %last = memref.load %starts[%j] : memref<9xi64>
        %lo = arith.index_cast %first : i64 to index
        %hi = arith.index_cast %last : i64 to index
        scf.for %k = %lo to %hi step %c1 {
          %row = memref.load %rows[%k] : memref<20xi32>
          %wide = arith.extsi %row : i32 to i64
          memref.store %wide, %scratch[%k] : memref<20xi64>
          %again = memref.load %scratch[%k] : memref<20xi64>
          %p = arith.index_cast %again : i64 to index
          %v = memref.load %x[%p] : memref<7xf32>
          %s = memref.load %o[%i] : memref<8xf32>
          %r = arith.addf %s, %v : f32
          memref.store %r, %o[%i] : memref<8xf32>
        }
        scf.reduce
      }
      return
    }"""
    function = make_nest(text, (8,))
    nest = concrete(function, (9,), (20,), (20,), (7,), (8,))
    assert index_bounds(function, nest.parameters) == (20, 7, 7, None, None)
    kernel = KernelLibrary.compile([function]).kernel(function.code_hash).bind(allocate_arguments(nest, 1))
    kernel(0, 8)
