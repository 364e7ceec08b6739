"""Entry points of compiled nests: `(lo, hi, fields) -> status`, safe to call from several threads at once.

`fields` is an array of 8-byte slots: per memref argument the descriptor (allocated pointer, aligned pointer, offset,
sizes, strides), per scalar its bits. The status is 0, or the address of the message of an assertion that failed.
"""

from __future__ import annotations

from torch_mlir import ir

from torch_pim.compiler_hook.codegen.range_form import range_functions
from torch_pim.compiler_hook.lowering.passes import walk

ADDRESS_TABLE = "entry_addresses"
"""Function that stores the address of each entry point into the array it is given."""


def add_entries(module: ir.Module) -> None:
    """Adds an entry point per range function and the address table to a module in the LLVM dialect, in place."""
    functions = range_functions(module)
    texts = []
    for function in functions:
        types = _argument_types(function)
        _return_status(function, types)
        # One parameter stands for one root buffer, so no two of them overlap.
        no_alias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get(module.context)}, module.context)
        nothing = ir.DictAttr.get({}, module.context)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [no_alias if kind == "!llvm.ptr" else nothing for kind in types], module.context
        )
        # Compiled once: without this the body is inlined into every caller.
        function.attributes["no_inline"] = ir.UnitAttr.get(module.context)
        function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>", module.context)
        texts.append(_entry_text(_name(function), types))
    texts.append(_table_text([_name(function) for function in functions]))
    added = ir.Module.parse("\n".join(texts), module.context)
    for view in list(added.body.operations):
        operation = view.operation
        if operation.regions[0].blocks:
            module.body.append(operation.detach_from_parent())


def _name(function: ir.Operation) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _argument_types(function: ir.Operation) -> list[str]:
    return [str(argument.type) for argument in function.regions[0].blocks[0].arguments]


def _return_status(function: ir.Operation, types: list[str]) -> None:
    """Makes the function return i64: 0, or the message's address where it would print it and abort the process."""
    context = function.context
    integer = ir.IntegerType.get_signless(64, context)
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.Type.parse(f"!llvm.func<i64 ({', '.join(types)})>", context), context
    )
    for done in walk(function, "llvm.return"):
        with ir.InsertionPoint(done), done.location:
            zero = ir.Operation.create(
                "llvm.mlir.constant", results=[integer], attributes={"value": ir.IntegerAttr.get(integer, 0)}
            )
            ir.Operation.create("llvm.return", operands=[zero.result])
        done.erase()
    for dead in walk(function, "llvm.unreachable"):
        calls = [view.operation for view in dead.block.operations if _callee(view.operation) in ("puts", "abort")]
        message = next((call.operands[0] for call in calls if _callee(call) == "puts"), None)
        if message is None:
            continue
        with ir.InsertionPoint(dead), dead.location:
            address = ir.Operation.create("llvm.ptrtoint", results=[integer], operands=[message])
            ir.Operation.create("llvm.return", operands=[address.result])
        for operation in (dead, *calls):
            operation.erase()


def _callee(operation: ir.Operation) -> str | None:
    """Name of the function that is called directly; None for other operations."""
    if operation.name != "llvm.call" or "callee" not in operation.attributes:
        return None
    return str(ir.FlatSymbolRefAttr(operation.attributes["callee"]).value)


def _entry_text(name: str, types: list[str]) -> str:
    lines = [
        f"llvm.func @{name}({', '.join(types)}) -> i64",
        f"llvm.func @{name}_entry(%lo: i64, %hi: i64, %fields: !llvm.ptr) -> i64 {{",
    ]
    values = ["%lo", "%hi"]
    for slot, kind in enumerate(types[2:]):
        lines.append(f"  %p{slot} = llvm.getelementptr %fields[{slot}] : (!llvm.ptr) -> !llvm.ptr, i64")
        lines.append(f"  %v{slot} = llvm.load %p{slot} : !llvm.ptr -> {kind}")
        values.append(f"%v{slot}")
    lines.append(f"  %status = llvm.call @{name}({', '.join(values)}) : ({', '.join(types)}) -> i64")
    lines.append("  llvm.return %status : i64\n}")
    return "\n".join(lines)


def _table_text(names: list[str]) -> str:
    lines = [f"llvm.func @{ADDRESS_TABLE}(%table: !llvm.ptr) {{"]
    for slot, name in enumerate(names):
        lines.append(f"  %a{slot} = llvm.mlir.addressof @{name}_entry : !llvm.ptr")
        lines.append(f"  %p{slot} = llvm.getelementptr %table[{slot}] : (!llvm.ptr) -> !llvm.ptr, i64")
        lines.append(f"  llvm.store %a{slot}, %p{slot} : !llvm.ptr, !llvm.ptr")
    lines.append("  llvm.return\n}")
    return "\n".join(lines)
