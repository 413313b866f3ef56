"""Expressions other than calls: names, operators, containers, choices."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Final

from devlint.inference.objects.heap import ITEM, Thing, merge_values
from devlint.inference.program.definitions import Class, File, Function
from devlint.inference.summary import binding, indexing, moves, tests
from devlint.inference.summary.dispatch import evaluate, evaluates, is_dimension
from devlint.inference.summary.frame import Frame, unread
from devlint.inference.summary.items import attribute, entry_of, item_of
from devlint.inference.terms.conditions import ALWAYS, Condition, both, needs_no_accelerator
from devlint.inference.terms.places import (
    ACCELERATORS,
    CPU,
    DEFAULT,
    Alternative,
    Places,
    join,
    may_be_accelerator,
    with_also,
    with_zero_dim,
    zero_dim_of,
)
from devlint.inference.terms.values import (
    ARRAY,
    BOOL,
    NOTHING,
    NUMBER,
    STRING,
    Kind,
    Value,
    merge,
    merge_all,
    part_of,
    something,
)

SYMBOLS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


@evaluates(ast.Constant)
def _constant(frame: Frame, node: ast.Constant) -> Value:
    value = node.value
    kind: Kind = "other"
    if value is None:
        kind = "none"
    elif isinstance(value, bool):
        kind = "bool"
    elif isinstance(value, (int, float, complex)):
        kind = "number"
    elif isinstance(value, (str, bytes)):
        kind = "string"
    return Value(kind, constant=value)


@evaluates(ast.Name)
def _name(frame: Frame, node: ast.Name) -> Value:
    value = frame.read(node.id)
    if value is not None:
        return value
    return defined(frame, node.id) or NOTHING


def defined(frame: Frame, name: str) -> Value | None:
    """What the module level defines or imports under a name."""
    file = frame.file
    if name in file.functions:
        return Value("function", ref=(file.functions[name], None))
    if name in file.classes:
        return Value("class", ref=file.classes[name])
    if name in file.imports:
        return imported(frame, file.imports[name])
    return None


def imported(frame: Frame, name: str) -> Value:
    """What a qualified name stands for: something of the project, else of a library."""
    project = frame.file.project
    found = project.find(frame.file, name) if project is not None else None
    if isinstance(found, Function):
        return Value("function", ref=(found, None))
    if isinstance(found, Class):
        return Value("class", ref=found)
    if found is None and project is not None:
        base, _, last = name.rpartition(".")
        home = project.find(frame.file, base) if base.strip(".") else None
        if isinstance(home, File) and home is not frame.file:
            top = frame.analyser.module_level(home)
            value = top.state.names.get(last)
            if value is not None:
                return (
                    frame.heap.symbolic(value, (f"@{home.path}:{last}",), top.heap)
                    if value.kind != "unknown"
                    else something()
                )
    return Value("library", ref=name)


@evaluates(ast.Attribute)
def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    name = frame.file.qualified(node)
    if name is not None:
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in frame.state.names:
            value = frame.read(root.id) if frame.function is not None and frame.outer is not None else None
            if value is None or value.kind == "library":
                return imported(frame, name)
    return attribute(frame, evaluate(frame, node.value), node.attr, node)


@evaluates(ast.Subscript)
def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    base = evaluate(frame, node.value)
    if isinstance(node.slice, ast.Slice):
        for bound in (node.slice.lower, node.slice.upper, node.slice.step):
            if bound is not None:
                evaluate(frame, bound)
        return _sliced(frame, base)
    index = evaluate(frame, node.slice)
    return item(frame, node, base, index)


def _sliced(frame: Frame, base: Value) -> Value:
    if base.kind == "tensor":
        return base._replace(places=with_zero_dim(base.places, False), path=None)
    if base.kind == "tuple":
        return Value("tuple", parts=None) if base.parts is None else Value("iterator", parts=base.parts)
    return base._replace(constant=None)


def item(frame: Frame, node: ast.Subscript, base: Value, index: Value) -> Value:
    """What `base[index]` gives."""
    if base.kind == "tensor":
        return indexing.read(frame, node, base, index)
    if base.kind == "batch":
        return base._replace(kind="tensor", proved=False)
    if base.kind == "tensors":
        return base._replace(kind="tensor", path=None)
    if base.kind == "size":
        return Value("number", base.places)
    if base.kind == "array":
        return ARRAY if index.kind in ("array", "tuple", "list") else ARRAY._replace(proved=False)
    if base.kind in ("tuple", "iterator") and base.parts is not None:
        constant = index.constant
        if isinstance(constant, int) and -len(base.parts) <= constant < len(base.parts):
            return frame.heap.settled(base.parts[constant])
        return item_of(frame, base, node)
    if base.objects:
        return _item_of_objects(frame, node, base, index)
    if base.kind == "unknown" and base.places:
        if _has_slices(node.slice):
            return Value("tensor", with_zero_dim(base.places, False), proved=base.proved and base.path is None)
        if index.is_tensor and not _is_named_item(index):
            return indexing.read(frame, node, base._replace(kind="tensor", proved=False), index)
        if base.path is not None:
            value = part_of(base, entry_of(index))
            return value._replace(kind="tensor") if value.path in frame.site.tensors else value
        return base._replace(path=None)
    if base.kind == "class":
        return base
    return unread(node)


def _has_slices(index: ast.expr) -> bool:
    """Whether an index has a new or whole dimension among others: only tensors and arrays take one."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    return any(isinstance(each, ast.Slice) or is_dimension(each) for each in parts)


def _is_named_item(index: Value) -> bool:
    return isinstance(index.constant, str)


def _item_of_objects(frame: Frame, node: ast.Subscript, base: Value, index: Value) -> Value:
    found: Value | None = None
    for identity in base.objects:
        thing = frame.heap.get(identity)
        if isinstance(thing.class_, Class):
            method = thing.class_.method("__getitem__")
            each = frame.analyser.call(frame, method, base, [index], node) if method is not None else unread(node)
        else:
            stored = frame.heap.field(identity, entry_of(index))
            if stored is None:
                stored = (
                    frame.heap.field(identity, ITEM)
                    if index.constant is None or thing.kind == "list"
                    else thing.fields.get(ITEM)
                )
            if stored is None and thing.kind == "module":
                stored = base
            if stored is None and identity[0] == "path":
                from devlint.inference.terms.values import given

                stored = given((*identity[1], entry_of(index)))
            each = stored if stored is not None else unread(node)
        found = each if found is None else merge(found, each)
    assert found is not None
    return found._replace(kind="tensor") if found.kind == "unknown" and found.path in frame.site.tensors else found


# -- operators


@evaluates(ast.BinOp)
def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    return combine(frame, node, node.op, (node.left, left), (node.right, right))


def combine(
    frame: Frame, node: ast.AST, op: ast.operator, left: tuple[ast.expr, Value], right: tuple[ast.expr, Value]
) -> Value:
    """What an operator gives, and what it needs."""
    left, right = (left[0], moves.as_tensor(left[1])), (right[0], moves.as_tensor(right[1]))
    a, b = left[1], right[1]
    if isinstance(op, ast.Mod) and a.kind == "string":
        return STRING
    if isinstance(op, ast.Mult) and "list" in (a.kind, b.kind):
        return a if a.kind == "list" else b
    if a.is_tensor or b.is_tensor:
        exact = isinstance(op, ast.MatMult)
        if not {a.kind, b.kind} & {"list", "dict", "string", "none"}:
            frame.together("operator", "exact" if exact else "scalar", SYMBOLS.get(type(op), "?"), [left, right], node)
        result = mixed(a, b, exact)
        return result._replace(places=computed(frame, node, result.places, [a, b]))
    if {a.kind, b.kind} & {"list", "tuple"}:
        return _concatenated(frame, node, op, a, b)
    if a.kind == b.kind == "number":
        return Value("number", a.places or b.places)
    if "size" in (a.kind, b.kind):
        return a if a.kind == "size" else b
    if "array" in (a.kind, b.kind):
        both = {a.kind, b.kind} <= {"array", "number", "bool", "list"}
        return ARRAY._replace(proved=both and a.proved and b.proved)  # of a tensor it is one
    if "string" in (a.kind, b.kind):
        return STRING
    if a.kind == "unknown" and b.kind == "unknown":
        if a.places and b.places:
            frame.need(
                "operator",
                "scalar",
                SYMBOLS.get(type(op), "?"),
                frame.operand(*left),
                frame.operand(*right),
                node,
                guessed=True,
            )
        chosen, other = (a, b) if may_be_accelerator(a.places) or not b.places else (b, a)
        return Value("unknown", with_also(chosen.places, other.places), proved=False)
    if a.kind == "unknown" or b.kind == "unknown":
        known = a if a.kind == "unknown" else b
        return Value("unknown", known.places, proved=False)
    return NUMBER if "number" in (a.kind, b.kind) else NOTHING


def _concatenated(frame: Frame, node: ast.AST, op: ast.operator, a: Value, b: Value) -> Value:
    if a.kind == b.kind == "tuple" and isinstance(op, ast.Add):
        return Value("tuple", parts=(*a.parts, *b.parts) if a.parts is not None and b.parts is not None else None)
    chosen = a if a.kind in ("list", "tuple") else b
    if a.kind == b.kind == "list":
        found = merge_all((*frame.heap.parts_of(a), *frame.heap.parts_of(b)))
        fields = {ITEM: found} if found is not None else {}
        return Value("list", objects=(frame.new_thing(node, Thing("list", fields=fields)),))
    return chosen


def computed(frame: Frame, node: ast.AST, places: Places, operands: Sequence[Value]) -> Places:
    """The places of a result. One of several CPU tensors comes from the operation: no factory alone can put it elsewhere."""
    made = [
        found for each in operands if (found := {id(p.origin.node) for p in each.places if _is_made(p) and p.origin})
    ]
    if len(made) < 2 or len(set().union(*made)) < 2:
        return places
    return tuple(
        each._replace(origin=each.origin._replace(why="computed", node=node, file=frame.path, maker=frame.site))
        if each.atom == CPU and each.origin is not None and each.origin.why == "factory"
        else each
        for each in places
    )


def _is_made(each: Alternative) -> bool:
    """Whether a value is a tensor on the CPU that has dimensions, on machines with an accelerator too."""
    return each.atom == CPU and each.zero_dim is not True and not needs_no_accelerator(each.condition)


def mixed(a: Value, b: Value, exact: bool = False) -> Value:
    """Where an operation on two values leaves its result: with the tensor that has dimensions, and on the accelerator."""
    x, y = (a, b) if a.is_tensor else (b, a)
    if y.kind == "unknown" and y.places and zero_dim_of(x.places) is True:
        return Value("tensor", with_also(y.places, x.places), proved=x.proved)
    if not y.may_be_tensor or not y.places or (y.kind == "unknown" and not y.proved):
        return Value("tensor", x.places, proved=x.proved)
    if y.kind == "unknown":
        return Value("tensor", x.places, proved=x.proved)
    dim_x, dim_y = zero_dim_of(x.places), zero_dim_of(y.places)
    zero_dim = None if exact else False if False in (dim_x, dim_y) else dim_x if dim_x == dim_y else None
    if (dim_x is True and dim_y is not True) or (not may_be_accelerator(x.places) and may_be_accelerator(y.places)):
        x = y
    places = _without_numbers(x.places)
    return Value("tensor", places if zero_dim is None else with_zero_dim(places, zero_dim), proved=x.proved)


@evaluates(ast.UnaryOp)
def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        return BOOL
    if value.kind == "number" and isinstance(value.constant, (int, float)) and isinstance(node.op, ast.USub):
        return value._replace(constant=-value.constant)
    return value._replace(path=None)


@evaluates(ast.Compare)
def _compare(frame: Frame, node: ast.Compare) -> Value:
    values = [(each, evaluate(frame, each)) for each in (node.left, *node.comparators)]
    if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
        return BOOL
    if any(value.is_tensor for _, value in values):
        if not any(value.kind in ("string", "none") for _, value in values):
            frame.together("operator", "scalar", SYMBOLS.get(type(node.ops[0]), "?"), values, node)
        return mixed(values[0][1], values[1][1])
    for _, value in values:
        if value.kind == "unknown" and value.places:
            return Value("unknown", value.places, proved=False)
    return BOOL


@evaluates(ast.BoolOp)
def _boolean(frame: Frame, node: ast.BoolOp) -> Value:
    found = evaluate(frame, node.values[0])
    with ExitStack() as stack:
        for before, each in pairwise(node.values):
            stack.enter_context(tests.supposed(frame, before, isinstance(node.op, ast.And)))
            value = evaluate(frame, each)
            if isinstance(node.op, ast.Or):
                found = _or(frame, found, value)
            else:
                found = value if found.kind in ("none", "bool") else merge(found, value)
    return found


def _or(frame: Frame, first: Value, second: Value) -> Value:
    """`first or second`: what was left out of `first` is `second`."""
    from devlint.inference.summary.devices import device_of

    if first.kind == "device" and any(each.atom == DEFAULT for each in first.places):
        places = device_of(second)
        kept = tuple(each for each in first.places if each.atom != DEFAULT)
        missing = next(each.condition for each in first.places if each.atom == DEFAULT)
        return Value("device", join(kept, tuple(p._replace(condition=p.condition | missing) for p in places or ())))
    if first.kind == "none":
        return second
    named = device_of(second) if second.kind in ("device", "string") else None
    if named and first.kind in ("unknown", "device", "string") and (device_of(first) or first.kind == "device"):
        subject = first.path or ()
        there: Condition = frozenset({(("truth", subject), True)}) if subject else ALWAYS
        missing_: Condition = frozenset({(("truth", subject), False)}) if subject else ALWAYS
        return Value("device", join(device_of(first) or (), named, there, missing_))
    return merge_values(first, second, frame.heap, frame.heap, frame.heap)


@evaluates(ast.IfExp)
def _choice(frame: Frame, node: ast.IfExp) -> Value:
    from devlint.inference.summary.devices import device_of

    evaluate(frame, node.test)
    yes, no = tests.outcomes(frame, node.test)
    outer, before = frame.condition, frame.state
    values = []
    for branch, truth, condition in ((node.body, True, yes), (node.orelse, False, no)):
        frame.state = before.copy()
        frame.condition, _ = both(outer, condition)
        tests.narrow(frame, node.test, truth)
        values.append(evaluate(frame, branch))
        heap = frame.state.heap
        for identity, thing in heap.things.items():
            before.heap.things.setdefault(identity, thing)
    frame.state, frame.condition = before, outer
    a, b = values
    kinds = {a.kind, b.kind}
    if (
        kinds <= {"string", "device", "unknown"}
        and kinds != {"unknown"}
        and (a.places or b.places or kinds == {"string"})
    ):
        first, second = device_of(a), device_of(b)
        if first and second:
            return Value("device", join(first, second, yes, no))
    return merge_values(a, b, frame.heap, frame.heap, frame.heap, yes, no)


@evaluates(ast.NamedExpr)
def _named(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    binding.bind(frame, node.target, value, node.value)
    return value


# -- containers


@evaluates(ast.Tuple)
def _tuple(frame: Frame, node: ast.Tuple) -> Value:
    return Value("tuple", parts=_elements(frame, node.elts))


def _elements(frame: Frame, nodes: list[ast.expr]) -> tuple[Value, ...] | None:
    values: list[Value] = []
    for each in nodes:
        if not isinstance(each, ast.Starred):
            values.append(evaluate(frame, each))
            continue
        inner = evaluate(frame, each.value)
        if inner.kind == "tuple" and inner.parts is not None:
            values += inner.parts
        elif inner.kind == "size":
            values.append(Value("number", inner.places))
        else:
            values.append(item_of(frame, inner, each))
    return tuple(values)


@evaluates(ast.List, ast.Set)
def _list(frame: Frame, node: ast.List | ast.Set) -> Value:
    parts = _elements(frame, node.elts) or ()
    starred = any(isinstance(each, ast.Starred) for each in node.elts)
    fields = {f"[{i}]" if not starred else ITEM: value for i, value in enumerate(parts)}
    return Value("list", objects=(frame.new_thing(node, Thing("list", fields=fields, whole=not starred, node=node)),))


@evaluates(ast.Dict)
def _dict(frame: Frame, node: ast.Dict) -> Value:
    fields: dict[str, Value] = {}
    for key, each in zip(node.keys, node.values, strict=True):
        value = evaluate(frame, each)
        if key is None:
            for identity in value.objects:
                fields.update(frame.heap.get(identity).fields)
            continue
        entry = entry_of(evaluate(frame, key))
        fields[entry] = merge(fields[entry], value) if entry == ITEM and entry in fields else value
    return Value("dict", objects=(frame.new_thing(node, Thing("dict", fields=fields, node=node)),))


@evaluates(ast.ListComp, ast.SetComp, ast.GeneratorExp)
def _comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    value = _comprehended(frame, node.generators, node.elt)
    if isinstance(node, ast.GeneratorExp):
        return Value("iterator", parts=(value,))
    if value.objects:
        for identity in value.objects:
            if identity[0] == "new":
                frame.heap.put(identity, frame.heap.get(identity)._replace(many=True))
    return Value("list", objects=(frame.new_thing(node, Thing("list", fields={ITEM: value}, node=node)),))


@evaluates(ast.DictComp)
def _dict_comprehension(frame: Frame, node: ast.DictComp) -> Value:
    value = _comprehended(frame, node.generators, node.value)
    return Value("dict", objects=(frame.new_thing(node, Thing("dict", fields={ITEM: value}, node=node)),))


def _comprehended(frame: Frame, generators: list[ast.comprehension], element: ast.expr) -> Value:
    names, condition = dict(frame.state.names), frame.condition
    for each in generators:
        through = evaluate(frame, each.iter)
        binding.bind(frame, each.target, item_of(frame, through, each.iter), None)
        for test in each.ifs:
            evaluate(frame, test)
            yes, _ = tests.outcomes(frame, test)
            tests.enter(frame, test, True, yes)
    value = evaluate(frame, element)
    frame.state.names, frame.condition = names, condition
    return value


@evaluates(ast.Lambda)
def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    return Value("function", ref=(Function(frame.file, node, None, frame), None))


@evaluates(ast.Await, ast.Starred)
def _inner(frame: Frame, node: ast.Await | ast.Starred) -> Value:
    return evaluate(frame, node.value)


@evaluates(ast.Yield)
def _yield(frame: Frame, node: ast.Yield) -> Value:
    frame.yields.append(evaluate(frame, node.value) if node.value is not None else NOTHING)
    return unread(node)


@evaluates(ast.YieldFrom)
def _yield_from(frame: Frame, node: ast.YieldFrom) -> Value:
    frame.yields.append(item_of(frame, evaluate(frame, node.value), node))
    return unread(node)


@evaluates(ast.JoinedStr)
def _formatted(frame: Frame, node: ast.JoinedStr) -> Value:
    for each in node.values:
        if isinstance(each, ast.FormattedValue):
            evaluate(frame, each.value)
    first = node.values[0] if node.values else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.rstrip(":") in ACCELERATORS:
        return Value("string", constant=first.value.rstrip(":"))
    return STRING


def places_of_all(values: list[Value]) -> Places:
    """Where the first of several values is that may be on an accelerator, else the first one."""
    tensors = [v for v in values if v.may_be_tensor and v.places]
    for value in tensors:
        if may_be_accelerator(value.places):
            return _without_numbers(value.places) if len(tensors) > 1 else value.places
    return tensors[0].places if tensors else ()


def _without_numbers(places: Places) -> Places:
    """Where a result of several operands is: a tensor of the host without dimensions leaves it where the others are."""
    return tuple(p for p in places if p.atom != CPU or p.zero_dim is not True) or places
