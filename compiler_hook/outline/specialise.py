"""Evaluates a Program for concrete argument layouts: every size known, every nest call bound to buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_pim.compiler_hook.errors import LoweringError, ShapeError
from torch_pim.compiler_hook.outline import layout as layouts
from torch_pim.compiler_hook.outline.bounds import check_bounds
from torch_pim.compiler_hook.outline.layout import Layout
from torch_pim.compiler_hook.outline.nest_function import (
    ConcreteNest,
    ConcreteParameter,
    MemRefParameter,
    ScalarParameter,
)
from torch_pim.compiler_hook.outline.program import (
    Allocate,
    Check,
    Compute,
    Dimension,
    GlobalTensor,
    Invoke,
    LoadScalar,
    Operand,
    Program,
    Slot,
    StoreScalar,
    View,
)
from torch_pim.compiler_hook.outline.scalar_ops import compute
from torch_pim.compiler_hook.outline.specialised_program import (
    ArgumentLayout,
    BoundArgument,
    BoundCall,
    BufferView,
    Number,
    RootBuffer,
    SpecialisedProgram,
    Value,
)


def specialise(program: Program, arguments: Sequence[ArgumentLayout]) -> SpecialisedProgram:
    """Evaluates all bookkeeping for arguments of these layouts.

    Raises ShapeError where an argument contradicts the program's types or a check of its shapes fails.
    """
    return _Specialiser(program, arguments).run()


class _Specialiser:
    def __init__(self, program: Program, arguments: Sequence[ArgumentLayout]) -> None:
        if len(arguments) != len(program.parameters):
            raise ShapeError(f"{program.name}: {len(arguments)} arguments given, {len(program.parameters)} expected")
        self.program = program
        self.roots: list[RootBuffer] = []
        self.values: dict[int, Value] = {}
        self.shape_tensors: dict[tuple[int, int], Number] = {}
        self.symbols = [function.loop_nest.symbols for function in program.functions]
        self.nests: list[ConcreteNest] = []
        self.nest_numbers: dict[tuple[object, ...], int] = {}
        self.calls: list[BoundCall] = []
        for position, argument in enumerate(arguments):
            self.values[position] = self._parameter(position, argument)

    def run(self) -> SpecialisedProgram:
        for step in self.program.steps:
            match step:
                case Allocate():
                    shape = tuple(self._integer(s) for s in step.sizes)
                    made = layouts.contiguous(shape)
                    self.values[step.result.index] = self._root(
                        RootBuffer("temporary", step.element_type, made.elements), made
                    )
                case GlobalTensor():
                    made = layouts.contiguous(step.shape)
                    root = RootBuffer("constant", step.element_type, made.elements, data=step.data)
                    self.values[step.result.index] = self._root(root, made)
                case View():
                    self.values[step.result.index] = self._view(step)
                case Dimension():
                    self.values[step.result.index] = self._buffer(step.source).layout.shape[
                        self._integer(step.dimension)
                    ]
                case Compute():
                    operands = [self._number(o) for o in step.operands]
                    self.values[step.result.index] = compute(
                        step.operation, operands, step.operand_type, step.result_type, step.predicate
                    )
                case StoreScalar():
                    self.shape_tensors[self._element(step.target, step.indices)] = self._number(step.value)
                case LoadScalar():
                    self.values[step.result.index] = self._shape_element(step.source, step.indices)
                case Check():
                    if not self._number(step.condition):
                        raise ShapeError(f"{self.program.name}: {step.message}")
                case Invoke():
                    self._invoke(step)
        results = tuple(self._value(r) for r in self.program.results)
        return SpecialisedProgram(self.program, tuple(self.roots), tuple(self.nests), tuple(self.calls), results)

    def _parameter(self, position: int, argument: ArgumentLayout) -> Value:
        expected = self.program.parameters[position]
        if isinstance(expected, ScalarParameter):
            if isinstance(argument, Layout):
                raise ShapeError(f"{self.program.name}: argument {position} must be a {expected.element_type} number")
            return argument
        if not isinstance(argument, Layout):
            raise ShapeError(f"{self.program.name}: argument {position} must be a tensor")
        _check_layout(self.program.name, position, expected, argument)
        return self._root(RootBuffer("parameter", expected.element_type, argument.elements, position), argument)

    def _root(self, root: RootBuffer, layout: Layout) -> BufferView:
        self.roots.append(root)
        return BufferView(len(self.roots) - 1, layout, root.element_type)

    def _value(self, operand: Operand) -> Value:
        return self.values[operand.index] if isinstance(operand, Slot) else operand

    def _number(self, operand: Operand) -> Number:
        value = self._value(operand)
        assert not isinstance(value, BufferView)
        return value

    def _integer(self, operand: Operand) -> int:
        return int(self._number(operand))

    def _buffer(self, operand: Operand) -> BufferView:
        value = self._value(operand)
        assert isinstance(value, BufferView)
        return value

    def _shape_element(self, buffer: Operand, indices: Sequence[Operand]) -> Number:
        element = self._element(buffer, indices)
        if element not in self.shape_tensors:
            raise LoweringError(f"{self.program.name}: element {element[1]} of a shape tensor is read but never stored")
        return self.shape_tensors[element]

    def _element(self, buffer: Operand, indices: Sequence[Operand]) -> tuple[int, int]:
        """(root, position) of an element: the same through every view of the root."""
        view = self._buffer(buffer)
        steps = zip(indices, view.layout.strides, strict=True)
        return view.root, view.layout.offset + sum(self._integer(index) * stride for index, stride in steps)

    def _view(self, step: View) -> BufferView:
        source = self._buffer(step.source)
        made = layouts.static_layout(step.layout) or self._computed_view(step, source.layout)
        return BufferView(source.root, made, source.element_type)

    def _computed_view(self, step: View, source: Layout) -> Layout:
        offsets = [self._integer(o) for o in step.offsets]
        sizes = [self._integer(s) for s in step.sizes]
        strides = [self._integer(s) for s in step.strides]
        match step.kind:
            case "subview":
                return layouts.subview(source, offsets, sizes, strides, step.dropped)
            case "reinterpret_cast":
                return Layout(tuple(sizes), tuple(strides), offsets[0])
            case "expand_shape":
                return layouts.expand(source, step.groups, sizes)
            case "collapse_shape":
                return layouts.collapse(source, step.groups)
            case "cast":
                return source
            case "reshape":
                assert step.shape is not None
                rank = self._buffer(step.shape).layout.shape[0]
                return layouts.reshape(source, [int(self._shape_element(step.shape, (i,))) for i in range(rank)])
        raise LoweringError(f"view {step.kind} is not supported")

    def _invoke(self, step: Invoke) -> None:
        arguments = tuple(BoundArgument(self._value(a.value), a.loaded, a.stored) for a in step.arguments)
        function = self.program.functions[step.function]
        parameters = tuple(
            _concrete_parameter(argument.value, parameter.element_type)
            for argument, parameter in zip(arguments, function.parameters, strict=True)
        )
        number = self._nest_number(step.function, parameters)
        stored = [a.value for a in arguments if a.stored and isinstance(a.value, BufferView)]
        nest = self.nests[number].loop_nest
        iterations = nest.parallel_trip if nest.partitionable else 1
        # A call that has nothing to do is no call.
        if iterations > 0 and (not stored or any(view.layout.elements > 0 for view in stored)):
            self.calls.append(BoundCall(number, arguments, iterations, step.site))

    def _nest_number(self, function: int, parameters: tuple[ConcreteParameter, ...]) -> int:
        """Where a buffer begins makes no other nest, nor does a number that no size depends on."""
        nest_function = self.program.functions[function]
        used = self.symbols[function]
        symbols = {name: value for name, value in bindings(parameters).items() if name in used}
        layouts_of_buffers = tuple((p.shape, p.strides) for p in parameters if not p.is_scalar)
        key = (function, layouts_of_buffers, tuple(symbols.items()))
        number = self.nest_numbers.setdefault(key, len(self.nests))
        if number == len(self.nests):
            nest = nest_function.loop_nest
            if symbols:
                nest = nest.at(symbols)
                check_bounds(self.program.name, nest, parameters)
            self.nests.append(ConcreteNest(nest_function, nest, parameters))
        return number


def _check_layout(name: str, position: int, expected: MemRefParameter, given: Layout) -> None:
    matches = len(given.shape) == len(expected.shape) and all(
        e in (None, g) for e, g in zip(expected.shape, given.shape, strict=True)
    )
    if not matches:
        wanted = "x".join("?" if s is None else str(s) for s in expected.shape)
        got = "x".join(map(str, given.shape))
        raise ShapeError(
            f"{name}: argument {position} has shape {got or 'scalar'}, compiled for {wanted or 'scalar'}; "
            "compile again for this shape or export with dynamic dimensions"
        )
    dense = layouts.contiguous(given.shape).strides
    if any(n > 1 and stride != step for n, stride, step in zip(given.shape, given.strides, dense, strict=True)):
        raise ShapeError(f"{name}: argument {position} has strides {given.strides}, expected contiguous ones {dense}")


def _concrete_parameter(value: Value, element_type: str) -> ConcreteParameter:
    if isinstance(value, BufferView):
        made = value.layout
        return ConcreteParameter(element_type, made.shape, made.strides, made.offset)
    return ConcreteParameter(element_type, (), (), 0, is_scalar=True, scalar_value=value)


def bindings(parameters: Sequence[ConcreteParameter]) -> Mapping[str, int]:
    """Values of the symbols of NestFunction.loop_nest for these arguments."""
    values: dict[str, int] = {}
    for position, parameter in enumerate(parameters):
        if parameter.is_scalar:
            if isinstance(parameter.scalar_value, int):
                values[f"a{position}"] = parameter.scalar_value
            continue
        for dimension, (size, stride) in enumerate(zip(parameter.shape, parameter.strides, strict=True)):
            values[f"a{position}.d{dimension}"] = size
            values[f"a{position}.s{dimension}"] = stride
    return values
