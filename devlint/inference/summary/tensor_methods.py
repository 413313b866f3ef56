"""Methods of tensors, by torch's records."""

from __future__ import annotations

import ast

from devlint import knowledge
from devlint.inference.objects.heap import ITEM, Thing
from devlint.inference.summary import factories, moves, torch_calls
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.devices import device_of
from devlint.inference.summary.expressions import mixed
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.zero_dim import zero_dim
from devlint.inference.terms.places import CPU, Alternative, Places, with_zero_dim, zero_dim_of
from devlint.inference.terms.values import ARRAY, BOOL, NOTHING, STRING, Value
from devlint.knowledge.records import Function


def call(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    """`base.name(...)` of a tensor, or of a batch."""
    if base.kind == "batch" and name in ("items", "values", "keys", "get", "pop", "copy", "update"):
        return _of_batch(base, name)
    if moves.is_move(name):
        return moves.move(frame, node, base, name, arguments)
    record = knowledge.method("Tensor", name)
    if record is None or not isinstance(node.func, ast.Attribute):
        return base._replace(kind="batch") if base.kind == "batch" else NOTHING
    if base.ref == "parameter" and (record.inplace or name == "requires_grad_"):
        return base
    receiver = (node.func.value, base)
    operands = [receiver, *torch_calls.tensor_operands(frame, record, arguments)]
    _need(frame, node, name, record, arguments, operands)
    if name == "numpy":
        if not is_forced(arguments):
            torch_calls.read_by_host(frame, node.func.value, base, node, "numpy")
        return ARRAY
    if name == "tolist":
        item = Value("number", base.places)
        return Value("list", objects=(frame.new_thing(node, Thing("list", fields={ITEM: item})),))
    return _result(frame, node, base, name, record, arguments, operands)


def is_forced(arguments: Arguments) -> bool:
    force = arguments.value(0, "force")
    return force is not None and force.constant is True


def _of_batch(base: Value, name: str) -> Value:
    item = base._replace(kind="tensor", proved=False)
    if name == "items":
        return Value("iterator", parts=(Value("tuple", parts=(STRING, item)),))
    if name in ("values", "keys"):
        return Value("iterator", parts=(item if name == "values" else STRING,))
    return item if name in ("get", "pop") else base


def _need(
    frame: Frame,
    node: ast.Call,
    name: str,
    record: Function,
    arguments: Arguments,
    operands: list[tuple[ast.expr, Value]],
) -> None:
    taking: list[tuple[ast.AST, Value]] = list(operands)
    if record.mixing in ("exact", "scalar", "expanded") and len(operands) > 1:
        how = "inplace" if record.inplace else "method"
        frame.together(how, record.mixing, name, taking, node)  # type: ignore[arg-type]
    elif record.mixing == "index" and len(operands) > 1:
        frame.need("index", "index", name, frame.operand(*operands[0]), frame.operand(*operands[-1]), node)
    elif name in ("index_put_", "index_put") and arguments.positional:
        indices = arguments.positional[0]
        for part in frame.heap.parts_of(indices[1]) or [indices[1]]:
            if part.may_be_tensor:
                frame.need("index", "index", name, frame.operand(*operands[0]), frame.operand(indices[0], part), node)


def _result(
    frame: Frame,
    node: ast.Call,
    base: Value,
    name: str,
    record: Function,
    arguments: Arguments,
    operands: list[tuple[ast.expr, Value]],
) -> Value:
    result = record.result_of(
        len(arguments.positional), arguments.given_keywords(),
        [i for i, (_, v) in enumerate(arguments.positional) if v.kind == "number"],
        [i for i, (_, v) in enumerate(arguments.positional) if v.is_tensor],
    )  # fmt: skip
    result = record.result if result == "unknown" else result
    if result in ("tensor", "same"):
        return _tensor(frame, node, base, name, record, arguments, operands)
    if result == "tensors":
        dims = "stays" if name in ("split", "chunk", "sort", "topk", "tensor_split") else None
        places = factories.with_dims(base.places, dims) if dims else with_zero_dim(base.places, None)
        return Value("tensors", places, proved=base.proved)
    if result == "size":
        return Value("number" if arguments.positional or arguments.named else "size", base.places)
    if result == "number":
        return Value("number", base.places if name in ("dim", "numel", "nelement", "size") else ())
    if result == "ndarray":
        return ARRAY
    return BOOL if result == "bool" else NOTHING


def _tensor(
    frame: Frame,
    node: ast.Call,
    base: Value,
    name: str,
    record: Function,
    arguments: Arguments,
    operands: list[tuple[ast.expr, Value]],
) -> Value:
    dims = zero_dim(record, arguments, [(n, v) for n, v in operands])
    if "device" in arguments.named:
        device = device_of(arguments.named["device"][1])
        if device is not None:
            return factories.new(frame, node, f"Tensor.{name}", device, arguments, dims)
    if name.startswith("new_"):
        frame.asks(base)
        shape = arguments.value(0, "size")
        is_scalar = shape is not None and shape.kind == "tuple" and shape.parts == ()
        return Value(
            "tensor",
            with_zero_dim(base.places, False if arguments.positional and not is_scalar else None),
            proved=base.proved,
        )
    if name == "copy_":
        return base
    found = base
    if record.elementwise and not record.inplace:
        for _, value in operands[1:]:
            found = mixed(found, value)
    if record.inplace:
        return base._replace(places=with_zero_dim(base.places, zero_dim_of(base.places)))
    places = factories.with_dims(found.places, dims) if isinstance(dims, str) else with_zero_dim(found.places, dims)
    if name in ("expand", "repeat", "expand_as", "view_as", "reshape_as", "tile"):
        places = _extended(frame, places, arguments, operands)
    return Value("tensor", places, proved=found.proved)


def _extended(frame: Frame, places: Places, arguments: Arguments, operands: list[tuple[ast.expr, Value]]) -> Places:
    """A new tensor takes the size of another one."""
    extent = factories.extent_of(frame, arguments.values())
    if not extent and len(operands) > 1:
        extent = tuple(Alternative(p.atom, None, p.condition) for p in operands[1][1].places)
    if not extent:
        return places
    return tuple(
        p._replace(origin=p.origin._replace(extent=extent))
        if p.atom == CPU and p.origin is not None and not p.origin.extent
        else p
        for p in places
    )
