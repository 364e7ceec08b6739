"""The sibling fusion rule: what is one nest, and what must not be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch_mlir import ir

from torch_pim.compiler_hook.frontend.graph_import import new_context
from torch_pim.compiler_hook.lowered import LoweredProgram
from torch_pim.compiler_hook.lowering.passes import functions
from torch_pim.compiler_hook.lowering.sibling_fusion import MIN_PARALLEL, SMALL_ITERATIONS, fuse_siblings
from torch_pim.features.analysis.contractions import contractions

Lower = Callable[..., LoweredProgram]


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


CUBE = (24, 20, 28)
ONE_NEST = {
    "softmax over rows": (lambda x: F.softmax(x, 0), CUBE),
    "softmax over the middle": (lambda x: F.softmax(x, 1), CUBE),
    "softmax over columns": (lambda x: F.softmax(x, 2), CUBE),
    "log softmax over the middle": (lambda x: F.log_softmax(x, 1), CUBE),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (28,), w, b), CUBE, (28,), (28,)),
    "layer norm over two dimensions": (lambda x: F.layer_norm(x, (20, 28)), CUBE),
    "rms norm": (rms_norm, CUBE, (28,)),
    "batch statistics": (lambda x: (x - x.mean(0)) / (x.var(0) + 1.0), (24, 32)),
    "matmul": (lambda x, y: x @ y, (24, 20), (20, 28)),
    "matmul and bias": (lambda x, y, b: F.linear(x, y, b), (24, 20), (28, 20), (28,)),
    "matmul, bias and activation": (lambda x, y, b: F.gelu(F.linear(x, y, b)), (24, 20), (28, 20), (28,)),
    "batched matmul and scale": (lambda x, y: torch.tanh(x @ y * 0.5), (3, 24, 20), (3, 20, 28)),
    "convolution and activation": (lambda x, w: F.relu(F.conv2d(x, w)), (2, 3, 9, 9), (8, 3, 3, 3)),
}


@pytest.mark.parametrize("name", ONE_NEST)
def test_one_nest(lower: Lower, name: str) -> None:
    function, *shapes = ONE_NEST[name]
    program = lower(function, *(torch.randn(shape) for shape in shapes))
    (nest,) = program.concrete_nests()
    assert nest.loop_nest.partitionable
    assert nest.loop_nest.kind == "compute"
    assert len(program.specialised().calls) == 1


def test_two_contractions_never_fuse(lower: Lower) -> None:
    program = lower(lambda x, y, z: (x @ y) @ z, *(torch.randn(32, 32) for _ in range(3)))
    assert [len(contractions(nest.loop_nest)) for nest in program.concrete_nests()] in ([1], [1, 1])
    assert len(program.specialised().calls) == 2


def test_copies_never_fuse(lower: Lower) -> None:
    program = lower(lambda x, y: torch.exp(torch.cat([x, y], 1)) * 2.0, torch.randn(32, 8), torch.randn(32, 24))
    kinds = [program.concrete_nests()[call.nest].loop_nest.kind for call in program.specialised().calls]
    assert kinds == ["copy", "copy", "compute"]


def test_a_norm_over_few_long_rows_keeps_its_parallel_iterations(lower: Lower) -> None:
    """Below MIN_PARALLEL rows, fusing would leave most cores of a device without work."""
    rows, columns = MIN_PARALLEL - 1, SMALL_ITERATIONS
    few = lower(lambda x: x / x.amax(1, keepdim=True), torch.randn(rows, columns))
    assert max(nest.loop_nest.parallel_trip for nest in few.concrete_nests()) == rows * columns
    small = lower(lambda x: x / x.amax(1, keepdim=True), torch.randn(rows, SMALL_ITERATIONS // MIN_PARALLEL // 4))
    assert len(small.concrete_nests()) == 1


# Below, loops over buffers %a, %b: memref<32x32xf32> and %v: memref<32xf32>, written by hand.
HEAD = """
func.func @f(%x: memref<32x32xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  %k = arith.constant 2.0 : f32
  %a = memref.alloc() : memref<32x32xf32>
  %b = memref.alloc() : memref<32x32xf32>
  %v = memref.alloc() : memref<32xf32>
"""


def scaled(
    target: str, source: str, *, at: str = "%i, %j", to: str = "%i, %j", extent: str = "%c32", before: str = ""
) -> str:
    """`target[to] = 2 source[at]` for all i, j."""
    return f"""
  scf.parallel (%i, %j) = (%c0, %c0) to ({extent}, %c32) step (%c1, %c1) {{
    {before}
    %l = memref.load {source}[{at}] : memref<32x32xf32>
    %p = arith.mulf %l, %k : f32
    memref.store %p, {target}[{to}] : memref<32x32xf32>
    scf.reduce
  }}"""


def row_sums(source: str, at: str = "%i, %j") -> str:
    """`v[i] = sum over j of source[at]`."""
    return f"""
  scf.parallel (%i) = (%c0) to (%c32) step (%c1) {{
    memref.store %k, %v[%i] : memref<32xf32>
    scf.for %j = %c0 to %c32 step %c1 {{
      %l = memref.load {source}[{at}] : memref<32x32xf32>
      %o = memref.load %v[%i] : memref<32xf32>
      %s = arith.addf %l, %o : f32
      memref.store %s, %v[%i] : memref<32xf32>
    }}
    scf.reduce
  }}"""


def add_vector(at: str) -> str:
    """`b[i, j] = x[i, j] + v[at]`."""
    return f"""
  scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %c32) step (%c1, %c1) {{
    %l = memref.load %x[%i, %j] : memref<32x32xf32>
    %w = memref.load %v[{at}] : memref<32xf32>
    %s = arith.addf %l, %w : f32
    memref.store %s, %b[%i, %j] : memref<32x32xf32>
    scf.reduce
  }}"""


def outer_copy() -> str:
    return """
  scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %c32) step (%c1, %c1) {
    %l = memref.load %a[%i, %j] : memref<32x32xf32>
    memref.store %l, %b[%i, %j] : memref<32x32xf32>
    scf.reduce
  }"""


FUSED = {
    "element by element": [scaled("%a", "%x"), scaled("%b", "%a")],
    "in place": [scaled("%a", "%x"), scaled("%a", "%a")],
    "sums of what was just stored": [scaled("%a", "%x"), row_sums("%a")],
    "column sums of what was just stored": [scaled("%a", "%x"), row_sums("%a", at="%j, %i")],
    "broadcast of row sums": [row_sums("%x"), add_vector("%i")],
    "broadcast of row sums along columns": [row_sums("%x"), add_vector("%j")],
    "equal symbolic extents": [scaled("%a", "%x", extent="%n"), scaled("%b", "%a", extent="%n")],
    "a view between them": [
        scaled("%a", "%x"),
        "%u = memref.expand_shape %a [[0, 1], [2]] output_shape [32, 1, 32] "
        ": memref<32x32xf32> into memref<32x1x32xf32>",
        scaled("%b", "%u", at="%i, %c0, %j").replace(
            "%u[%i, %c0, %j] : memref<32x32", "%u[%i, %c0, %j] : memref<32x1x32"
        ),
    ],
}
APART = {
    "a neighbour's element": [
        scaled("%a", "%x"),
        scaled("%b", "%a", at="%m, %j", before="%m = arith.subi %c31, %i : index"),
    ],
    "the transposed element": [scaled("%a", "%x"), scaled("%b", "%a", at="%j, %i")],
    "always the first element": [scaled("%a", "%x"), scaled("%b", "%a", at="%c0, %c0")],
    "the diagonal": [scaled("%a", "%x"), scaled("%b", "%a", at="%i, %i")],
    "sums of another iteration's row": [
        scaled("%a", "%x"),
        row_sums("%a", at="%m, %j").replace("scf.for", "%m = arith.subi %c31, %i : index\n    scf.for"),
    ],
    "a later store to what others load": [scaled("%a", "%b", at="%j, %i"), scaled("%b", "%x")],
    "two stores to one place": [scaled("%a", "%x"), scaled("%a", "%x", to="%j, %i")],
    "no common buffer": [scaled("%a", "%x"), scaled("%b", "%x")],
    "different extents": [scaled("%a", "%x", extent="%n"), scaled("%b", "%a")],
    "a copy": [scaled("%a", "%x"), outer_copy()],
    "a view whose indices are not followed": [
        scaled("%a", "%x"),
        "%u = memref.collapse_shape %a [[0, 1]] : memref<32x32xf32> into memref<1024xf32>",
        scaled("%b", "%x", at="%i, %j").replace(
            "memref.load %x[%i, %j] : memref<32x32xf32>", "memref.load %u[%i] : memref<1024xf32>"
        ),
    ],
    "a scalar in between": [
        scaled("%a", "%x"),
        "%y = memref.load %a[%c0, %c0] : memref<32x32xf32>\n memref.store %y, %v[%c0] : memref<32xf32>",
        scaled("%b", "%a"),
    ],
    "a step of two": [scaled("%a", "%x"), scaled("%b", "%a").replace("step (%c1, %c1)", "step (%c2, %c1)")],
    "a range that does not begin at zero": [
        scaled("%a", "%x"),
        scaled("%b", "%a").replace("= (%c0, %c0)", "= (%c1, %c0)"),
    ],
}


def fuse(pieces: list[str]) -> tuple[int, str]:
    """(pairs fused, the module afterwards, which is verified)."""
    with new_context():
        module = ir.Module.parse(HEAD + "\n".join(pieces) + "\n return\n}")
        (function,) = functions(module)
        fused = fuse_siblings(function)
        assert module.operation.verify()
        return fused, str(module)


def top_level_loops(text: str) -> int:
    return sum(line.startswith("    scf.parallel") for line in text.splitlines())


@pytest.mark.parametrize("name", FUSED)
def test_dependences_within_an_iteration_fuse(name: str) -> None:
    fused, text = fuse(FUSED[name])
    assert fused == 1
    assert top_level_loops(text) == 1


@pytest.mark.parametrize("name", APART)
def test_other_dependences_stay_apart(name: str) -> None:
    fused, text = fuse(APART[name])
    assert fused == 0
    assert top_level_loops(text) == 2


def test_dimensions_given_up_become_an_inner_parallel_loop() -> None:
    _, text = fuse([row_sums("%x"), add_vector("%j")])
    (outer,) = [line for line in text.splitlines() if line.startswith("    scf.parallel")]
    assert outer.count("%c32") == 1
    # The vector's index is the column, which is now the outer counter.
    counter = outer.split("(")[1].split(")")[0]
    assert f"%alloc_1[{counter}]" in text
    (inner,) = [line for line in text.splitlines() if line.startswith("      scf.parallel")]
    assert inner.count("%c32") == 1


def test_three_in_a_row_fuse_into_one() -> None:
    fused, text = fuse([scaled("%a", "%x"), row_sums("%a"), add_vector("%i")])
    assert fused == 2
    assert top_level_loops(text) == 1
