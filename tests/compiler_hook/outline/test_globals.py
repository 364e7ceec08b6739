"""Constant tensors of a module, as bytes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_mlir import ir

from torch_pim.compiler_hook.errors import LoweringError
from torch_pim.compiler_hook.frontend.graph_import import new_context
from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.compiler_hook.outline.globals import global_tensor
from torch_pim.compiler_hook.outline.program import GlobalTensor, Slot

RESOURCE = '\n{-# dialect_resources: { builtin: { w: "0x040000000000803F00000040" } } #-}'


def read(value: str, kind: str) -> GlobalTensor:
    """The constant `value` of memref type `kind`."""
    text = f"""
    memref.global "private" constant @other : memref<1xf32> = dense<7.0>
    memref.global "private" constant @c : memref<{kind}> = {value}
    func.func @f() {{
      %g = memref.get_global @c : memref<{kind}>
      return
    }}"""
    with new_context():
        module = ir.Module.parse(text + (RESOURCE if "resource" in value else ""))
        (op,) = walk(module.operation, "memref.get_global")
        return global_tensor(op, Slot(3))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("f64", np.float64),
        ("f32", np.float32),
        ("f16", np.float16),
        ("i64", np.int64),
        ("i32", np.int32),
        ("i8", np.int8),
    ],
)
def test_numbers(kind: str, dtype: type) -> None:
    point = ".5" if kind.startswith("f") else ""
    tensor = read(f"dense<[[1{point}, -2{point}], [3{point}, 4{point}]]>", f"2x2x{kind}")
    values = np.array([[1, -2], [3, 4]]) + np.array([[0.5, -0.5], [0.5, 0.5]]) * bool(point)
    assert tensor == GlobalTensor(Slot(3), kind, (2, 2), values.astype(dtype).tobytes())
    assert read(f"dense<3{point}>", f"2x2x{kind}").data == np.full((2, 2), 3.5 if point else 3, dtype).tobytes()


def test_truth_values_take_a_byte_each() -> None:
    bits = [True, False, True, True, False, False, True, False, True]
    text = ", ".join(str(bit).lower() for bit in bits)
    assert read(f"dense<[{text}]>", "9xi1").data == np.array(bits).tobytes()
    assert read("dense<true>", "9xi1").data == b"\1" * 9


def test_a_scalar_tensor() -> None:
    assert read("dense<2.0>", "f32").data == np.float32(2.0).tobytes()


def test_uniform_bfloat16() -> None:
    expected = torch.full((2,), 1.5, dtype=torch.bfloat16).view(torch.int16).numpy().tobytes()
    assert read("dense<1.5>", "2xbf16").data == expected


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ("dense<[1.0, 2.0]>", "2xbf16", "non-uniform bf16"),
        ("dense_resource<w>", "2xf32", "pass the tensor as an argument"),
        ("dense<1>", "2xi4", "element type i4"),
        ("uninitialized", "2xf32", "pass the tensor as an argument"),
    ],
)
def test_what_cannot_be_read_is_refused(value: str, kind: str, reason: str) -> None:
    with pytest.raises(LoweringError, match=reason):
        read(value, kind)
