"""Arithmetic and conversions of every element type against PyTorch."""

from __future__ import annotations

import pytest
import torch

from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.codegen.memref import TORCH_ELEMENT_TYPES, memref_of_tensor
from torch_pim.compiler_hook.outline.nest_function import NestFunction

COUNT = 40
TYPES = {name: dtype for dtype, name in TORCH_ELEMENT_TYPES.items() if dtype != torch.uint8}
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8")
WIDTH = {"f64": 3, "f32": 2, "f16": 1, "bf16": 1}
TOLERANCE = {"f64": 1e-13, "f32": 2e-6, "f16": 2e-3, "bf16": 1e-2}


def elementwise(body: str, source: str, result: str) -> str:
    return f"""
    func.func @nest(%a: memref<{COUNT}x{source}>, %b: memref<{COUNT}x{source}>, %o: memref<{COUNT}x{result}>) {{
      %third = arith.constant 0.3333333333333333 : f64
      %three = arith.constant 3 : i32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {COUNT} : index
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
        %x = memref.load %a[%i] : memref<{COUNT}x{source}>
        %y = memref.load %b[%i] : memref<{COUNT}x{source}>
        {body}
        memref.store %z, %o[%i] : memref<{COUNT}x{result}>
        scf.reduce
      }}
      return
    }}"""


def data(element_type: str, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    dtype = TYPES[element_type]
    if dtype == torch.bool:
        return torch.rand(COUNT, generator=generator) > 0.5
    if not dtype.is_floating_point:
        return torch.randint(1 if seed else -20, 20, (COUNT,), generator=generator).to(dtype)
    x = 3 * torch.randn(COUNT, generator=generator, dtype=torch.float64)
    x[:7] = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e-6, 90.0])
    return x.roll(seed).to(dtype)


def compute(function: NestFunction, *tensors: torch.Tensor) -> torch.Tensor:
    kernel = KernelLibrary.compile([function]).kernel(function.code_hash)
    kernel.bind([memref_of_tensor(tensor) for tensor in tensors])(0, COUNT)
    return tensors[-1]


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    name = TORCH_ELEMENT_TYPES[found.dtype]
    tolerance = TOLERANCE.get(name, 0.0)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance / 100, equal_nan=True)


UNARY = {
    "exp": torch.exp, "erf": torch.erf, "tanh": torch.tanh, "log": torch.log, "log1p": torch.log1p,
    "expm1": torch.expm1, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "sin": torch.sin, "cos": torch.cos,
    "absf": torch.abs, "floor": torch.floor, "ceil": torch.ceil, "roundeven": torch.round, "atan": torch.atan,
}  # fmt: skip


@pytest.mark.parametrize("element_type", FLOATS)
def test_functions_follow_libm_for_all_inputs(make_nest, element_type):
    functions = [
        make_nest(elementwise(f"%z = math.{name} %x : {element_type}", element_type, element_type), (COUNT,))
        for name in UNARY
    ]
    KernelLibrary.compile(functions)  # all in one module: compiled once, looked up below
    x = data(element_type)
    for function, reference in zip(functions, UNARY.values(), strict=True):
        # PyTorch computes narrow types in f32 and rounds once, as generated code does.
        expected = reference(x.float()).to(x.dtype) if WIDTH[element_type] == 1 else reference(x)
        assert_same(compute(function, x, x, torch.empty_like(x)), expected)


@pytest.mark.parametrize("element_type", FLOATS)
@pytest.mark.parametrize(
    ("operation", "reference"),
    [
        ("addf", torch.add), ("mulf", torch.mul), ("divf", torch.div), ("remf", torch.fmod),
        ("maximumf", torch.maximum), ("minimumf", torch.minimum),
    ],
)  # fmt: skip
def test_float_arithmetic(make_nest, element_type, operation, reference):
    x, y = data(element_type), data(element_type, 3)
    function = make_nest(
        elementwise(f"%z = arith.{operation} %x, %y : {element_type}", element_type, element_type), (COUNT,)
    )
    assert_same(compute(function, x, y, torch.empty_like(x)), reference(x, y))


@pytest.mark.parametrize("element_type", INTEGERS)
@pytest.mark.parametrize(
    ("operation", "reference"),
    [
        ("addi", torch.add), ("muli", torch.mul), ("maxsi", torch.maximum), ("xori", torch.bitwise_xor),
        ("floordivsi", torch.floor_divide), ("remsi", torch.fmod),
    ],
)  # fmt: skip
def test_integer_arithmetic_wraps_and_divides_like_pytorch(make_nest, element_type, operation, reference):
    x, y = data(element_type) * 5, data(element_type, 3)
    function = make_nest(
        elementwise(f"%z = arith.{operation} %x, %y : {element_type}", element_type, element_type), (COUNT,)
    )
    assert torch.equal(compute(function, x, y, torch.empty_like(x)), reference(x, y))


@pytest.mark.parametrize("base_type", ["i64", "i8"])
def test_integer_power(make_nest, base_type):
    x = data(base_type)
    function = make_nest(elementwise(f"%z = math.ipowi %x, %y : {base_type}", base_type, base_type), (COUNT,))
    y = torch.full_like(x, 3)
    assert torch.equal(compute(function, x, y, torch.empty_like(x)), x**3)


def conversion(source: str, result: str) -> str:
    bits = {"i64": 64, "i32": 32, "i16": 16, "i8": 8, "i1": 1}
    if source in FLOATS and result in FLOATS:
        if WIDTH[source] == WIDTH[result]:
            return f"%w = arith.extf %x : {source} to f32\n%z = arith.truncf %w : f32 to {result}"
        return f"%z = arith.{'extf' if WIDTH[source] < WIDTH[result] else 'truncf'} %x : {source} to {result}"
    if source in FLOATS:
        return f"%z = arith.fptosi %x : {source} to {result}"
    if result in FLOATS:
        return f"%z = arith.{'uitofp' if source == 'i1' else 'sitofp'} %x : {source} to {result}"
    extend = "extui" if source == "i1" else "extsi"
    return f"%z = arith.{extend if bits[source] < bits[result] else 'trunci'} %x : {source} to {result}"


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "i1"])
def test_conversions(make_nest, source):
    results = [name for name in (*FLOATS, *INTEGERS) if name != source]
    functions = [make_nest(elementwise(conversion(source, r), source, r), (COUNT,)) for r in results]
    KernelLibrary.compile(functions)
    for function, result in zip(functions, results, strict=True):
        x = data(source)
        if source in FLOATS and result in INTEGERS:
            x = torch.nan_to_num(x, 0.5, 7.0, -7.0).clamp(-100, 100)  # Elsewhere the result is undefined.
        found = compute(function, x, x, torch.empty(COUNT, dtype=TYPES[result]))
        torch.testing.assert_close(found, x.to(TYPES[result]), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16"])
def test_double_constants_in_narrow_code_need_no_missing_symbol(make_nest, element_type):
    body = f"%k = arith.truncf %third : f64 to {element_type}\n%z = arith.mulf %x, %k : {element_type}"
    x = data(element_type)
    expected = x * torch.tensor(1 / 3, dtype=x.dtype)
    assert_same(compute(make_nest(elementwise(body, element_type, element_type), (COUNT,)), x, x, x.clone()), expected)


@pytest.mark.parametrize("result", ["f16", "bf16"])
def test_double_to_narrow_float_rounds_as_pytorch_does(make_nest, result):
    dtype = TYPES[result]
    # Just above the middle of two neighbours: a single rounding goes up, PyTorch's two roundings go to even.
    middle = 1.0 + torch.finfo(dtype).eps / 2
    x = torch.full((COUNT,), middle + 1e-12, dtype=torch.float64)
    function = make_nest(elementwise(f"%z = arith.truncf %x : f64 to {result}", "f64", result), (COUNT,))
    assert torch.equal(compute(function, x, x, torch.empty(COUNT, dtype=dtype)), x.to(dtype))


@pytest.mark.parametrize("element_type", FLOATS)
def test_comparison_select_and_bool(make_nest, element_type):
    x, y = data(element_type), data(element_type, 3)
    compare = make_nest(elementwise(f"%z = arith.cmpf olt, %x, %y : {element_type}", element_type, "i1"), (COUNT,))
    assert torch.equal(compute(compare, x, y, torch.empty(COUNT, dtype=torch.bool)), x < y)
    body = f"%w = arith.cmpf ogt, %x, %y : {element_type}\n%z = arith.select %w, %x, %y : {element_type}"
    select = make_nest(elementwise(body, element_type, element_type), (COUNT,))
    assert_same(compute(select, x, y, torch.empty_like(x)), torch.where(x > y, x, y))


def test_bool_logic(make_nest):
    x, y = data("i1"), data("i1", 3)
    function = make_nest(elementwise("%z = arith.xori %x, %y : i1", "i1", "i1"), (COUNT,))
    assert torch.equal(compute(function, x, y, torch.empty_like(x)), x ^ y)


def test_elementwise_sums_are_not_fused_with_products(make_nest):
    body = "%p = arith.mulf %x, %y : f32\n%q = arith.mulf %x, %y : f32\n%z = arith.subf %p, %q : f32"
    x, y = torch.full((COUNT,), 1.1), torch.full((COUNT,), 1.3)
    assert compute(make_nest(elementwise(body, "f32", "f32"), (COUNT,)), x, y, torch.empty(COUNT)).eq(0.0).all()
