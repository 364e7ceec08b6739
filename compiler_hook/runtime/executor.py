"""Runs a specialised program on real memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from torch_pim.compiler_hook.codegen.kernel import Argument as KernelArgument
from torch_pim.compiler_hook.codegen.kernel import Kernel
from torch_pim.compiler_hook.codegen.kernel_library import KernelLibrary
from torch_pim.compiler_hook.codegen.memref import MemRefValue
from torch_pim.compiler_hook.outline.memref_types import TORCH_TYPES
from torch_pim.compiler_hook.outline.nest_function import Parameter, ScalarParameter
from torch_pim.compiler_hook.outline.specialised_program import BoundCall, BufferView, SpecialisedProgram, Value
from torch_pim.compiler_hook.protocols import Device
from torch_pim.compiler_hook.runtime.host_pool import HostPool
from torch_pim.features.placement import Side


@dataclass(frozen=True, slots=True)
class _PreparedCall:
    kernel: Kernel
    iterations: int
    side: Side
    arguments: tuple[KernelArgument, ...]
    slots: tuple[int, ...]
    pointers: tuple[tuple[int, int], ...]
    """(position in `slots`, root) of every base pointer that is filled in at run time."""
    dead: tuple[int, ...]
    """Temporaries that nothing reads after this call."""


class Executor:
    """One program at one set of shapes under one placement. Safe to call from several threads."""

    def __init__(
        self,
        program: SpecialisedProgram,
        library: KernelLibrary,
        sides: Sequence[Side],
        device: Device,
        pool: HostPool,
    ) -> None:
        self._program = program
        self._device = device
        self._pool = pool
        self._constants = {
            number: _constant(root.data, root.element_type)
            for number, root in enumerate(program.roots)
            if root.kind == "constant"
        }
        self._results = tuple(zip(program.results, program.program.result_types, strict=True))
        dead = _dead_after(program)
        self._calls = [
            _prepare(program, library, call, side, dead.get(number, ()))
            for number, (call, side) in enumerate(zip(program.calls, sides, strict=True))
        ]

    def __call__(self, arguments: Sequence[torch.Tensor | int | float]) -> list[torch.Tensor | int | float]:
        """Results in program order, in memory of their own."""
        memory: dict[int, torch.Tensor] = dict(self._constants)
        for number, buffer in enumerate(self._program.roots):
            if buffer.kind == "parameter":
                argument = arguments[buffer.parameter]
                assert isinstance(argument, torch.Tensor)
                memory[number] = argument
        for prepared in self._calls:
            slots = list(prepared.slots)
            for position, root in prepared.pointers:
                pointer = self._memory(memory, root).data_ptr()
                slots[position] = slots[position + 1] = pointer
            bound = prepared.kernel.bind_slots(slots, prepared.arguments)
            if prepared.side == "pim":
                self._device.run(bound, prepared.iterations)
            else:
                self._pool.run(bound, prepared.iterations)
            for root in prepared.dead:
                memory.pop(root, None)
        return [self._result(memory, value, kind) for value, kind in self._results]

    def _memory(self, memory: dict[int, torch.Tensor], root: int) -> torch.Tensor:
        tensor = memory.get(root)
        if tensor is None:
            buffer = self._program.roots[root]
            tensor = torch.empty(buffer.elements, dtype=TORCH_TYPES[buffer.element_type])
            memory[root] = tensor
        return tensor

    def _result(self, memory: dict[int, torch.Tensor], value: Value, kind: Parameter) -> torch.Tensor | int | float:
        if not isinstance(value, BufferView):
            return value
        buffer = self._memory(memory, value.root)
        layout = value.layout
        tensor = torch.as_strided(buffer, layout.shape, layout.strides, buffer.storage_offset() + layout.offset)
        return tensor.item() if isinstance(kind, ScalarParameter) else tensor


def _constant(data: bytes, element_type: str) -> torch.Tensor:
    if not data:
        return torch.empty(0, dtype=TORCH_TYPES[element_type])
    return torch.frombuffer(bytearray(data), dtype=TORCH_TYPES[element_type])


def _arguments(call: BoundCall) -> tuple[KernelArgument, ...]:
    return tuple(_placeholder(a.value) if isinstance(a.value, BufferView) else a.value for a in call.arguments)


def _placeholder(view: BufferView) -> MemRefValue:
    """Layout of a buffer whose pointer is filled in at run time."""
    return MemRefValue(0, view.layout.offset, view.layout.shape, view.layout.strides, view.element_type)


def _prepare(
    program: SpecialisedProgram, library: KernelLibrary, call: BoundCall, side: Side, dead: tuple[int, ...]
) -> _PreparedCall:
    kernel = library.kernel(program.nests[call.nest].function.code_hash)
    pointers = []
    position = 0
    for argument in call.arguments:
        if isinstance(argument.value, BufferView):
            pointers.append((position, argument.value.root))
            position += 3 + 2 * len(argument.value.layout.shape)
        else:
            position += 1
    arguments = _arguments(call)
    slots = kernel.slots(arguments)
    return _PreparedCall(kernel, call.iterations, side, arguments, tuple(slots), tuple(pointers), dead)


def _dead_after(program: SpecialisedProgram) -> dict[int, tuple[int, ...]]:
    """Call number -> temporaries whose last use it is."""
    last: dict[int, int] = {}
    for number, call in enumerate(program.calls):
        for argument in call.arguments:
            if isinstance(argument.value, BufferView):
                last[argument.value.root] = number
    kept = {value.root for value in program.results if isinstance(value, BufferView)}
    dead: dict[int, list[int]] = {}
    for root, number in last.items():
        if program.roots[root].kind == "temporary" and root not in kept:
            dead.setdefault(number, []).append(root)
    return {number: tuple(roots) for number, roots in dead.items()}
