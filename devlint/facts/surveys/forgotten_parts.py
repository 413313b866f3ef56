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

from devlint.facts.events import NO_GUARDS, Meet
from devlint.facts.interpreter.objects import SET_BY_NAME, moves_itself
from devlint.facts.surveys.outline import Outline, dotted
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.kept_states import taken_over
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute
from devlint.facts.text.signatures import positional_names
from devlint.facts.values import CPU, HOME, Value
from devlint.model import Origin

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult)
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
    if not o.flow.assume:
        return
    for class_ in list(o.flow.classes.values()):
        if class_.abroad or class_.is_module or class_.local_bases or not {"object"}.issuperset(class_.bases):
            continue
        moves, init = class_.methods.get("to"), class_.methods.get("__init__")
        if moves is None or init is None or SET_BY_NAME.search(o.flow.text(class_.node)) is not None:
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
    stores = [
        n for n in walk(o.tree) if isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Store)
    ]
    inside = class_.methods["__init__"]
    if not all(is_self_attribute(n) and o.function(n) is inside for n in stores):
        return False
    return re.search(rf"\b{re.escape(name)}(\[[^\]]*\])?\.(to|cuda|type_as|cpu)\(", o.flow.source.text) is None


def is_moved(o: Outline, class_: ClassFacts) -> bool:
    """Whether the file calls `to` on an object of the class."""
    calls = (call.func for call, _ in o.flow.scan.calls.get("to", ()))
    return any(isinstance(f, ast.Attribute) and is_object(o, f.value, class_, _DEPTH) for f in calls)


def is_object(o: Outline, node: ast.expr, class_: ClassFacts, depth: int) -> bool:
    """Whether an expression makes an object of the class, also by way of a function or a name of the file."""
    if not depth:
        return False
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
        found = Origin(o.flow.span(given[0]), "a tensor of the CPU is given here")
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
    for node in walk(o.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            parts, how = [node.left, node.right], "operator"
        elif isinstance(node, ast.Call) and is_self_attribute(node.func):
            parts, how = list(computed_with(o, node)), "module"
        else:
            continue
        off = next((p for p in parts if isinstance(p, ast.Attribute) and p.attr == name), None)
        others = (p for p in parts if isinstance(p, ast.Attribute) and p.attr in moved)
        other = next((p for p in others if off is not None and dotted(p.value) == dotted(off.value) is not None), None)
        if (
            off is None
            or other is None
            or (is_self_attribute(off) and o.nearest(node, ast.ClassDef) is not class_.node)
        ):
            continue
        because = (made, Origin(o.flow.span(moves.body[0]), f"`{moves.name}` moves `{other.attr}`, and not `{name}`"))
        yield Meet(
            o.flow.span(node), node, because, NO_GUARDS, {}, o.name(node), "module" if how == "module" else "operator",
            how, o.flow.operand(off, Value("tensor", CPU, False, because=because)),
            o.flow.operand(other, Value("tensor", HOME, False)), "assume",
        )  # fmt: skip


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
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            for side in (node.left, node.right):
                while (
                    isinstance(side, ast.Call)
                    and isinstance(side.func, ast.Attribute)
                    and side.func.attr in _ITEM_BY_ITEM
                ):
                    side = side.func.value
                if isinstance(side, ast.Name) and _OF_HOST.search(side.id) is None:
                    yield side.id
