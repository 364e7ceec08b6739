"""Functions outside the canonical form are refused with the name of what is wrong."""

from __future__ import annotations

import pytest
from torch_mlir import ir

from torch_pim.features.extraction import ExtractionError, extract_loop_nest


def text(body: str, parameters: str = "%x: memref<4xf32>", name: str = "nest") -> str:
    return f"module {{\nfunc.func @{name}({parameters}) {{\n%c0 = arith.constant 0 : index\n{body}\nreturn\n}}\n}}"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("module { func.func", r"nest 'n' is not valid MLIR"),
        (text("", name="other"), r"no function @nest in the module; expected one, found \"other\""),
        ("module {}", r"found none"),
        (text("%v = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>"), r"nest 'n': vector\.load is not part"),
        (
            text("%v = arith.constant dense<0.0> : vector<4xf32>\n%w = arith.addf %v, %v : vector<4xf32>"),
            r"arith\.addf is not part of the canonical form.*on scalars",
        ),
        (text("affine.for %i = 0 to 4 {\n}"), r"affine\.for is not part of the canonical form.*lower it"),
        (text("", parameters="%x: memref<4xcomplex<f32>>"), r"element type complex<f32> has no known size"),
        (
            text(
                "%f = memref.load %x[%c0] : memref<4xf32>\n%w = arith.fptosi %f : f32 to i64\n"
                "%k = arith.index_cast %w : i64 to index\n"
                "%s = memref.subview %x[0] [2] [%k] : memref<4xf32> to memref<2xf32, strided<[?]>>\n"
                "%v = memref.load %s[%c0] : memref<2xf32, strided<[?]>>"
            ),
            r"a stride of memref\.subview depends on a loop or on data",
        ),
    ],
)
def test_errors(source, message):
    with pytest.raises(ExtractionError, match=message):
        extract_loop_nest(source, "n", "h")


def test_module_function_and_text_give_the_same_record(nest_of):
    source = text("%v = memref.load %x[%c0] : memref<4xf32>")
    with ir.Context():
        module = ir.Module.parse(source)
        function = module.body.operations[0]
        records = [extract_loop_nest(s, "n", "h") for s in (source, module, module.operation, function)]
    assert len(set(records)) == 1
