"""Makes range functions in the LLVM dialect record the address of each load and store."""

from __future__ import annotations

import re

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.range_form import range_functions
from torch_pim.compiler_hook.errors import CodegenError
from torch_pim.compiler_hook.lowering.passes import walk
from torch_pim.pim_emulator.caches.geometry import ADDRESS_SHIFT, MAXIMUM_ACCESS_BYTES
from torch_pim.pim_emulator.tracing.recorder import TraceRecorder

_SCALAR_BYTES = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "!llvm.ptr": 8,
}  # fmt: skip
_VECTOR = re.compile(r"vector<(?P<sizes>(?:\d+x)+)(?P<element>\w+)>")
_UNTRACED_CALLEE = "@memrefCopy"
_UNTRACED = ("llvm.intr.mem", "llvm.intr.masked", "llvm.intr.vp", "llvm.atomicrmw", "llvm.cmpxchg")


def instrument(module: ir.Module, recorder: TraceRecorder) -> int:
    """Adds the recording of `address << 16 | bytes << 1 | is_write` before each access, in place.

    Returns the number of accesses found. The recorder must outlive the compiled code, which holds its addresses. The
    position lives in an alloca, which LLVM turns into a register. Raises CodegenError for an access it cannot record.
    """
    return sum(_Function(function, recorder).instrument() for function in range_functions(module))


def access_bytes(type_text: str) -> int:
    """Bytes of one access of an LLVM-dialect type; raises CodegenError for a type that no nest loads or stores."""
    vector = _VECTOR.fullmatch(type_text)
    count, element = 1, type_text
    if vector:
        element = vector["element"]
        for size in vector["sizes"].split("x")[:-1]:
            count *= int(size)
    if element not in _SCALAR_BYTES:
        raise CodegenError(f"cannot trace an access of type {type_text}; expected a number or a vector of numbers")
    nbytes = count * _SCALAR_BYTES[element]
    if nbytes > MAXIMUM_ACCESS_BYTES:
        raise CodegenError(f"cannot trace an access of {nbytes} bytes; expected at most {MAXIMUM_ACCESS_BYTES}")
    return nbytes


class _Function:
    """Instruments one function."""

    def __init__(self, function: ir.Operation, recorder: TraceRecorder) -> None:
        self._function = function
        self._recorder = recorder
        context = function.context
        self._integer = ir.IntegerType.get_signless(64, context)
        self._pointer = ir.Type.parse("!llvm.ptr", context)
        self._dynamic = ir.Attribute.parse(f"array<i32: {-(1 << 31)}>", context)

    def instrument(self) -> int:
        for operation in walk(self._function):
            called = str(operation.attributes["callee"]) if "callee" in operation.attributes else ""
            if operation.name.startswith(_UNTRACED) or called == _UNTRACED_CALLEE:
                raise CodegenError(
                    f"cannot trace {called or operation.name}; nests are expected to access memory element by element"
                )
        accesses = walk(self._function, "llvm.load", "llvm.store")
        returns = walk(self._function, "llvm.return", "llvm.unreachable")
        entry = self._function.regions[0].blocks[0].operations[0].operation
        with ir.InsertionPoint(entry), self._function.location:
            self._one = self._constant(1)
            self._shift = self._constant(ADDRESS_SHIFT)
            self._capacity = self._constant(self._recorder.capacity)
            self._entries = self._address(self._recorder.entries_address)
            total = self._address(self._recorder.count_address)
            position = self._create("llvm.alloca", self._pointer, [self._one], elem_type=ir.TypeAttr.get(self._integer))
            self._store(self._load(total), position)
        for access in accesses:
            with ir.InsertionPoint(access), self._function.location:
                self._record(access, position)
        for end in returns:
            with ir.InsertionPoint(end), self._function.location:
                self._store(self._load(position), total)
        return len(accesses)

    def _record(self, access: ir.Operation, position: ir.Value) -> None:
        write = access.name == "llvm.store"
        pointer = access.operands[1] if write else access.operands[0]
        value = access.operands[0] if write else access.results[0]
        count = self._load(position)
        address = self._create("llvm.ptrtoint", self._integer, [pointer])
        shifted = self._create("llvm.shl", self._integer, [address, self._shift])
        tag = self._constant(access_bytes(str(value.type)) << 1 | int(write))
        slot = self._create("llvm.intr.umin", self._integer, [count, self._capacity])
        target = self._create(
            "llvm.getelementptr", self._pointer, [self._entries, slot],
            rawConstantIndices=self._dynamic, elem_type=ir.TypeAttr.get(self._integer),
        )  # fmt: skip
        self._store(self._create("llvm.or", self._integer, [shifted, tag]), target)
        self._store(self._create("llvm.add", self._integer, [count, self._one]), position)

    def _address(self, value: int) -> ir.Value:
        return self._create("llvm.inttoptr", self._pointer, [self._constant(value)])

    def _constant(self, value: int) -> ir.Value:
        return self._create("llvm.mlir.constant", self._integer, [], value=ir.IntegerAttr.get(self._integer, value))

    def _load(self, pointer: ir.Value) -> ir.Value:
        return self._create("llvm.load", self._integer, [pointer])

    def _store(self, value: ir.Value, pointer: ir.Value) -> None:
        ir.Operation.create("llvm.store", operands=[value, pointer])

    def _create(self, name: str, kind: ir.Type, operands: list[ir.Value], **attributes: ir.Attribute) -> ir.Value:
        return ir.Operation.create(name, results=[kind], operands=operands, attributes=attributes).result
