"""Attributes that a plain class forgets in its own `to`, and that meet those that it moves.

    class Graph:
        def __init__(self, x, weight, y): ...
        def to(self, device):
            self.x = self.x.to(device)
            self.y = self.y.to(device)
            return self

    graph = Graph(torch.rand(9, 4), torch.rand(9), labels).to(device)
    layer(graph.x, graph.weight)        # `weight` is still on the CPU

Every object of the class in the file is given a tensor of the CPU there. A call of a layer counts where the layer computes with
what it is given: lengths and indices may be meant for the host.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from devlint.facts.events import NO_GUARDS, How, Meet
from devlint.facts.interpreter.objects import moves_itself, sets_by_name
from devlint.facts.surveys.outline import Outline, dotted
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.kept_states import taken_over
from devlint.facts.text.method_names import OFF_HOST_TENSOR
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import parameter_names, positional_names
from devlint.facts.values import CPU, HOME, Value
from devlint.model import Origin

_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@"}
_MOVES = OFF_HOST_TENSOR | {"cpu"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ITEM_BY_ITEM = frozenset(
    {
        "log",
        "exp",
        "sqrt",
        "abs",
        "float",
        "unsqueeze",
        "view",
        "reshape",
        "expand",
        "expand_as",
        "transpose",
        "t",
        "sigmoid",
    }
)
#: Names of what may be meant for the host.
_OF_HOST = re.compile(r"len|num|size|count|idx|index|^[a-z]$")
_DEPTH = 3


def forgotten_parts(o: Outline) -> Iterator[Meet]:
    """The calls of layers with what `to` moves and what it forgets."""
    if not o.flow.assume:
        return
    for class_ in list(o.flow.classes.values()):
        if class_.abroad or class_.is_module or class_.local_bases or not {"object"}.issuperset(class_.bases):
            continue
        moves, init = class_.methods.get("to"), class_.methods.get("__init__")
        if moves is None or init is None or sets_by_name(o.flow.text(class_.node)):
            continue
        moved = set(moved_by(moves))
        given = taken_over(init)
        forgotten = {a: p for a, p in given.items() if a not in moved and is_left(o, class_, a)}
        if len(moved) < 2 or not forgotten or not is_moved(o, class_):
            continue
        for attribute, parameter in forgotten.items():
            made = given_on_host(o, class_, init, parameter)
            if made is not None and any(given_on_host(o, class_, init, given[a]) for a in moved if a in given):
                yield from meetings(o, class_, moves, attribute, moved, made)


def moved_by(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The attributes that a method moves, each by itself: `self.x = self.x.to(device)`."""
    for node in walk(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and moves_itself(node.value, target.attr) is not None:
                    yield target.attr


def is_left(o: Outline, class_: ClassFacts, name: str) -> bool:
    """Whether `__init__` alone binds an attribute in the file, and nothing moves what has its name."""
    inside = class_.methods["__init__"]
    for node in o.attributes.get(name, ()):
        if isinstance(node.ctx, ast.Store) and not (is_self_attribute(node) and o.function(node) is inside):
            return False
    calls = (call.func for move in _MOVES for call, _ in o.flow.scan.calls.get(move, ()))
    return all(not isinstance(f, ast.Attribute) or last_name(whole(f.value)) != name for f in calls)


def whole(node: ast.expr) -> ast.expr:
    """What an item is taken of; the expression itself where it is no item."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def is_moved(o: Outline, class_: ClassFacts) -> bool:
    """Whether the file calls `to` on an object of the class, and has none that it does not move."""
    calls = (call.func for call, _ in o.flow.scan.calls.get("to", ()))
    if not any(isinstance(f, ast.Attribute) and is_object(o, f.value, class_, _DEPTH) for f in calls):
        return False
    return all(is_moved_later(o, call, _DEPTH) for call in o.called.get(class_.name, ()))


def is_moved_later(o: Outline, made: ast.Call, depth: int) -> bool:
    """Whether an object is moved where it is made, where it has a name, or by those who call the function that returns it."""
    outer = o.parent.get(made)
    if isinstance(outer, ast.Attribute):
        return outer.attr == "to"
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1:
        path, scope = dotted(outer.targets[0]), o.scope(made)
        return path is not None and any(o.scope(node) is scope for node in o.moved_paths.get(path, ()))
    function = o.function(made) if isinstance(outer, ast.Return) else None
    if function is None or isinstance(function, ast.Lambda) or not depth:
        return False
    return all(is_moved_later(o, call, depth - 1) for call in o.called.get(function.name, ()))


def is_object(o: Outline, node: ast.expr, class_: ClassFacts, depth: int) -> bool:
    """Whether an expression makes an object of the class, also by way of a function or a name of the file."""
    if not depth:
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        return is_object(o, node.func.value, class_, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        function = o.module_function(node.func.id)
        if function is None:
            return node.func.id == class_.name
        returned = [n.value for n in walk(function) if isinstance(n, ast.Return)]
        return bool(returned) and all(v is not None and is_object(o, v, class_, depth - 1) for v in returned)
    if isinstance(node, ast.Name):
        bound = o.assignments(node.id, node)
        return bool(bound) and all(v is not None and is_object(o, v, class_, depth - 1) for v in bound)
    return False


def given_on_host(
    o: Outline, class_: ClassFacts, init: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str
) -> Origin | None:
    """Where an object is given a tensor of the CPU for a parameter, if every object of the class is."""
    names = positional_names(init.args)
    found: Origin | None = None
    for made, arguments, _ in o.flow.constructions.values():
        if made is not class_:
            continue
        given = arguments.get(parameter, names.index(parameter) - 1 if parameter in names else None)
        if given is None or not given[1].is_tensor or given[1].device != CPU or given[1].zero_dim is not False:
            return None
        found = Origin(o.flow.span(given[0]), "a CPU tensor is passed in here")
    return found


def meetings(
    o: Outline,
    class_: ClassFacts,
    moves: ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
    moved: set[str],
    made: Origin,
) -> Iterator[Meet]:
    """The operations and calls of layers that bring the attribute together with one that `to` moves, of one object."""
    for off in o.attributes.get(name, ()):
        node = o.parent.get(off)
        node = o.parent.get(node) if isinstance(node, ast.keyword) else node
        how: How
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            parts, how, operation = [node.left, node.right], "operator", _ARITHMETIC[type(node.op)]
        elif isinstance(node, ast.Call) and is_self_attribute(node.func):
            parts, how, operation = list(computed_with(o, node)), "module", "module"
        else:
            continue
        others = (p for p in parts if isinstance(p, ast.Attribute) and p.attr in moved)
        other = next((p for p in others if dotted(p.value) == dotted(off.value) is not None), None)
        if off not in parts or other is None or not is_moved_before(o, class_, off):
            continue
        because = (made, Origin(o.flow.span(moves.body[0]), f"`{moves.name}` moves `{other.attr}`, but not `{name}`"))
        yield Meet(
            o.flow.span(node), node, because, NO_GUARDS, {}, o.name(node), how,
            operation, o.flow.operand(off, Value("tensor", CPU, False, because=because)),
            o.flow.operand(other, Value("tensor", HOME, False)), "assume",
        )  # fmt: skip


def is_moved_before(o: Outline, class_: ClassFacts, part: ast.Attribute) -> bool:
    """Whether the object that has a part was moved already, as far as the text of a function shows its order.

    An argument counts where the file hands such an object to some call.
    """
    path, scope = dotted(part.value) or "", o.scope(part)
    if path == "self":
        function = o.function(part)
        if o.nearest(part, ast.ClassDef) is not class_.node or not isinstance(function, _FUNCTIONS):
            return False
        calls = [call.func for call, _ in o.flow.scan.calls.get(function.name, ())]
        return all(is_moved_above(o, dotted(f.value) or "", f) for f in calls if isinstance(f, ast.Attribute))
    if isinstance(scope, _FUNCTIONS) and path in parameter_names(scope):
        given = (a for call in o.calls for a in (*call.args, *(k.value for k in call.keywords)))
        return any(is_object(o, a, class_, _DEPTH) for a in given)
    return is_object(o, part.value, class_, _DEPTH) and is_moved_above(o, path, part)


def is_moved_above(o: Outline, path: str, node: ast.expr) -> bool:
    """Whether a scope moves a path, or what it gives the path, above a node."""
    scope = o.scope(node)
    values = [v for v in o.assignments(path, node) if isinstance(v, ast.Call) and last_name(v.func) == "to"]
    moves = [*values, *(m for m in o.moved_paths.get(path, ()) if o.scope(m) is scope)]
    return any(o.scope(m) is not scope or m.lineno < node.lineno for m in moves)


def computed_with(o: Outline, call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a layer of the file that its `forward` computes with, and the first one."""
    around = o.nearest(call, ast.ClassDef)
    owner = o.flow.classes.get(around.name) if around is not None else None
    assert isinstance(call.func, ast.Attribute)
    layer = owner.attribute(call.func.attr) if owner is not None else None
    class_ = o.flow.classes.get(layer.type_name or "") if layer is not None and layer.kind == "module" else None
    found = class_.method("forward") if class_ is not None else None
    if class_ is None or found is None or o.flow.moves_inputs(class_):
        return
    used = set(factors(found[1]))
    names = positional_names(found[1].args)[1:]
    given: Mapping[str, ast.expr] = {
        **dict(zip(names, call.args, strict=False)),
        **{k.arg: k.value for k in call.keywords if k.arg is not None},
    }
    for place, (parameter, argument) in enumerate(given.items()):
        if parameter in used or not place:
            yield argument


def factors(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The names that a method computes with as they are, or in another shape: `e + weight.log().unsqueeze(-1)`."""
    for node in walk(method):
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            for side in (node.left, node.right):
                while (
                    isinstance(side, ast.Call)
                    and isinstance(side.func, ast.Attribute)
                    and side.func.attr in _ITEM_BY_ITEM
                ):
                    side = side.func.value
                if isinstance(side, ast.Name) and _OF_HOST.search(side.id) is None:
                    yield side.id
