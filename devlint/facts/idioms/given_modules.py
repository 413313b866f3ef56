"""Modules that a constructor is given in a plain container, as its annotation says, and that its class keeps in it.

`def __init__(self, parts: Sequence[Encoder])` with `self.parts = list(parts)`, and in `forward` `part(x)` for each of them.
Without an annotation what is moved and called is a module: `self.parts = [part.to(device) for part in parts]`.
Items that nothing calls may be there for other reasons, and so may those that the class moves or whose device it reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.idioms.unseen_modules import called, looks_like_network
from devlint.facts.text.classes import ClassFacts, Container, Unregistered
from devlint.facts.text.method_names import MOVES, REGISTERS
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import is_own_attribute, last_name
from devlint.facts.text.signatures import named_parameters, positional_names
from devlint.facts.text.signs import moves
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow

_CONTAINERS: dict[str, Container] = {
    "List": "list", "list": "list", "Sequence": "list", "MutableSequence": "list", "Iterable": "list", "Collection": "list",
    "Iterator": "list", "Tuple": "tuple", "tuple": "tuple", "Dict": "dict", "dict": "dict", "Mapping": "dict",
    "MutableMapping": "dict",
}  # fmt: skip
#: What copies a container, plain as before.
_COPIES: dict[str, Container] = {"list": "list", "tuple": "tuple", "dict": "dict"}
#: Functions that read a container and keep nothing of it.
_READERS = frozenset(
    {"len", "enumerate", "zip", "isinstance", "all", "any", "sum", "max", "min", "range", "print", "iter"}
)
#: Methods of an item that only a module has.
_OF_MODULES = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict"})


def given_modules(flow: Flow, class_: ClassFacts) -> Iterator[tuple[str, Unregistered]]:
    """The attributes of a module that keep the modules of an argument in a plain container."""
    init = class_.methods.get("__init__")
    arguments = named_parameters(init.args) if init is not None else []
    noted = {a.arg: a for a in arguments}
    if init is None or not noted or any(called(call) in REGISTERS for call in flow.scan.calls_in(init)):
        return
    opened: set[str] | None = None
    for node in statements(init):
        target = _target(node)
        if target is None or not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        kept = kept_as(node.value)
        argument = noted.get(kept[0]) if kept is not None else None
        known = class_.attributes.get(target.attr)
        if kept is None or argument is None or (known is not None and known.kind == "module"):
            continue
        if opened is None:
            opened = opened_attributes(flow, class_, init)
        if target.attr not in opened:
            continue
        moved = moved_item(node.value) is not None
        said = items(argument.annotation) if argument.annotation is not None or not moved else ("list", [])
        if said is None or target.attr in class_.unregistered or is_handed_on(flow, init, kept[0], target.attr):
            continue
        container = kept[1] or said[0]
        uses = Items(class_, target.attr)
        if not uses.called or uses.placed or not all(is_module(flow, part, uses) for part in said[1]):
            continue
        if is_registered_by_callers(flow, class_, kept[0]) or binds_items(class_, init, kept[0], target.attr):
            continue
        value = Value(
            container if container in ("tuple", "dict") else "list", because=(flow.origin(argument, "passed in here"),)
        )
        yield target.attr, Unregistered(node, target, node.value, value, "modules", container, placed=moved)


def binds_items(class_: ClassFacts, init: ast.AST, argument: str, name: str) -> bool:
    """Whether `__init__` binds items of an argument to attributes too, which registers them, and no other is read by its key.

    `self.hyper = codecs["hyper"]` beside `self.codecs = codecs`, and elsewhere `self.codecs["hyper"](x)`.
    """
    kept = [(_target(node), node.value) for node in statements(init) if isinstance(node, ast.Assign)]
    bound = {_key(value, argument) for target, value in kept if target is not None} - {None}
    read = {_key(node, f"self.{name}") for method in class_.methods.values() for node in walk(method)} - {None}
    return bool(bound) and read <= bound


def _key(node: ast.AST, container: str) -> object:
    """The constant key by which an expression reads an item of a container; None for anything else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    return node.slice.value if ast.unparse(node.value) == container else None


def _target(node: ast.AST) -> ast.Attribute | None:
    """`self.name` of an assignment to nothing else."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    target = targets[0] if len(targets) == 1 else None
    return target if isinstance(target, ast.Attribute) and is_own_attribute(target, target.attr) else None


def kept_as(node: ast.expr) -> tuple[str, Container | None] | None:
    """The variable whose items an expression keeps as they are, and in what container, if it says so."""
    if isinstance(node, ast.Name):
        return node.id, None
    if isinstance(node, ast.Call) and called(node) in _COPIES and len(node.args) == 1 and not node.keywords:
        given = node.args[0]
        return (given.id, _COPIES[called(node)]) if isinstance(given, ast.Name) else None
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        turn = node.generators[0]
        item = moved_item(node) or node.elt
        same = isinstance(turn.target, ast.Name) and isinstance(item, ast.Name) and turn.target.id == item.id
        return (turn.iter.id, "comprehension") if same and isinstance(turn.iter, ast.Name) else None
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):  # `parts or []`
        first, *others = node.values
        plain = all(isinstance(other, (ast.List, ast.Tuple, ast.Dict)) for other in others)
        return (first.id, None) if plain and isinstance(first, ast.Name) else None
    if isinstance(node, ast.IfExp):  # `parts if parts is not None else []`
        sides = (node.body, node.orelse)
        plain = any(isinstance(side, (ast.List, ast.Tuple, ast.Dict)) for side in sides)
        return next(((side.id, None) for side in sides if plain and isinstance(side, ast.Name)), None)
    return None


def moved_item(node: ast.expr) -> ast.expr | None:
    """What a comprehension moves one by one, and does nothing else with: `part` of `[part.to(device) for part in parts]`."""
    item = node.elt if isinstance(node, ast.ListComp) else None
    return (
        item.func.value if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and moves(item) else None
    )


def items(node: ast.expr | None) -> tuple[Container, list[ast.expr]] | None:
    """The container that an annotation says, and the classes of its items; None for anything else, also besides one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    found = [items_of(part) for part in alternatives(node)]
    first = found[0] if found else None
    if first is None:
        return None
    parts = [part for each in found if each is not None for part in each[1]]
    return (first[0], parts) if None not in found and parts else None


def items_of(node: ast.expr) -> tuple[Container, list[ast.expr]] | None:
    """`items` of an annotation without alternatives."""
    container = _CONTAINERS.get(last_name(node.value)) if isinstance(node, ast.Subscript) else None
    if container is None or not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts = [
        part for part in parts[container == "dict" :] if not (isinstance(part, ast.Constant) and part.value is ...)
    ]
    return container, [inner for part in parts for inner in alternatives(part)]


def alternatives(node: ast.expr | None) -> list[ast.expr]:
    """The types that an annotation allows, None left out."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return alternatives(node.left) + alternatives(node.right)
    if isinstance(node, ast.Subscript) and last_name(node.value) in ("Optional", "Union"):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return [inner for part in parts for inner in alternatives(part)]
    return [node]


def opened_attributes(flow: Flow, class_: ClassFacts, init: ast.AST) -> set[str]:
    """Attributes of which methods other than `__init__` may take items, by a key or in a loop: no others pass `Items`."""
    first, last = class_.node.lineno, class_.node.end_lineno or 0
    within = [each for each in flow.scan.functions.values() if first <= getattr(each.node, "lineno", 0) <= last]
    opened: list[ast.expr] = []
    for own in within:
        if own.node is not init:
            opened += [each.value for each in own.subscripts]
            opened += [loop.iter for loop in own.loops]
    return {part.attr for each in opened for part in walk(each) if isinstance(part, ast.Attribute)}


class Items:
    """What the methods of a class do with the items of `self.name`.

    `called`: as networks are. `handled`: as only modules are. `placed`: they are moved, or asked where they are.
    """

    def __init__(self, class_: ClassFacts, name: str) -> None:
        self.called = self.handled = self.placed = False
        self._name = name
        for method_name, method in class_.methods.items():
            self._turns = set() if method_name == "__init__" else set(self._turning(method))
            for node in walk(method):
                if isinstance(node, ast.Call) and method_name != "__init__" and self._is_item(node.func):
                    self.called = True
                elif isinstance(node, ast.Attribute) and self._is_item(node.value):
                    self.called |= node.attr == "forward"
                    self.handled |= node.attr in _OF_MODULES
                    self.placed |= node.attr in MOVES or node.attr == "device"

    def _turning(self, method: ast.AST) -> Iterator[str]:
        """The names that stand for the items one after the other, and for one of them."""
        for node in walk(method):
            if isinstance(node, (ast.For, ast.comprehension)) and self._reads(node.iter):
                yield from (n.id for n in walk(node.target) if isinstance(n, ast.Name))
            elif (
                isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and self._reads(node.value.value)
            ):
                yield from (t.id for t in node.targets if isinstance(t, ast.Name))

    def _reads(self, node: ast.expr) -> bool:
        return any(isinstance(n, ast.expr) and is_own_attribute(n, self._name) for n in walk(node))

    def _is_item(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._turns
        return isinstance(node, ast.Subscript) and is_own_attribute(node.value, self._name)


def is_module(flow: Flow, node: ast.expr, uses: Items) -> bool:
    """Whether an annotation is a class of modules, as far as it can be read, or else by its name or what is done with it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.Name(node.value, ast.Load()) if node.value.isidentifier() else node
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    class_ = flow.class_named(node)
    if class_ is not None:
        return class_.is_module
    qualname = flow.qualify(node)
    known = knowledge.cls(qualname) if qualname is not None else None
    if known is not None:
        return known.family == "Module"
    return qualname is not None and "." in qualname and (uses.handled or looks_like_network(flow, qualname))


def is_handed_on(flow: Flow, init: ast.AST, name: str, attribute: str) -> bool:
    """Whether `__init__` gives the container, or what is in it, to something else, which may register it; or binds it anew."""
    turns = {name}
    for node in walk(init):
        if isinstance(node, (ast.For, ast.comprehension)) and is_among(node.iter, {name}, attribute):
            turns |= {n.id for n in walk(node.target) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.Assign) and not isinstance(node.value, (ast.List, ast.Tuple, ast.Dict)):
            if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
                if not (kept := kept_as(node.value)) or kept[0] != name:
                    return True
    for call in flow.scan.calls_in(init):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if called(call) not in _READERS | _COPIES.keys() and any(is_among(each, turns, attribute) for each in given):
            return True
    return False


def is_among(node: ast.expr, names: set[str], attribute: str) -> bool:
    """Whether an expression is, or holds, one of some variables or `self.attribute` as a whole."""
    while isinstance(node, (ast.Starred, ast.Subscript)):
        node = node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(is_among(each, names, attribute) for each in node.elts)
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        return any(is_among(each.iter, names, attribute) for each in node.generators)
    if isinstance(node, ast.Call) and called(node) in ("enumerate", "zip", "items", "values", "list", "tuple"):
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else node.args
        return any(is_among(each, names, attribute) for each in inner)
    return (isinstance(node, ast.Name) and node.id in names) or is_own_attribute(node, attribute)


def is_registered_by_callers(flow: Flow, class_: ClassFacts, name: str) -> bool:
    """Whether a call of the file makes an object of the class with parts of another module, or with a `ModuleList`."""
    for site in flow.scan.calls.get(class_.name, ()):
        init = class_.methods["__init__"]
        names = positional_names(init.args)[1:]
        place = names.index(name) if name in names else len(site.call.args)
        given = [*site.call.args[place : place + 1], *(k.value for k in site.call.keywords if k.arg == name)]
        for node in (n for each in given for n in walk(each)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                return True
            if called(node) in ("ModuleList", "ModuleDict", "Sequential") and node in given:
                return True
    return False
