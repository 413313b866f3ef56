"""Copies of a module's state that a class keeps in its attributes: shadow weights, anchors, a copy of the whole module.

    self.shadow[name] = param.data.clone()          # for each of `model.named_parameters()`
    self.average = copy.deepcopy(model)

Nothing is said of an attribute that is given anything else as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from devlint.facts.text.classes import MODULE, ClassFacts
from devlint.facts.text.module_states import Function, State, States, What
from devlint.facts.text.references import is_self_attribute, last_name

#: Bases that move nothing but what is registered.
_PLAIN_BASES = MODULE | {"object", "abc.ABC"}


class Copy(NamedTuple):
    """What an attribute of `self` holds: made at `node` in the method `maker`, of what `root` stands for there.

    `others`: the methods that bind the attribute to something else.
    """

    attribute: str
    what: What
    root: str
    node: ast.expr
    maker: str
    others: frozenset[str]


class _Store(NamedTuple):
    attribute: str
    value: ast.expr
    item: bool  # one item of the attribute is stored
    method: str


def copies(class_: ClassFacts) -> dict[str, Copy]:
    """The attributes of a class that hold copies of a module's state, each with the one method that makes them."""
    if class_.local_bases or not _PLAIN_BASES.issuperset(class_.bases):
        return {}
    stores: dict[str, list[_Store]] = {}
    readers = {name: States(method, {}) for name, method in class_.methods.items()}
    for name, states in readers.items():
        for store in _stores(name, states):
            stores.setdefault(store.attribute, []).append(store)
    containers: dict[str, What] = {
        s.attribute: "tensors" if isinstance(s.value, ast.Starred) else "mapping"
        for each in stores.values()
        for s in each
        if s.item
    }
    for states in readers.values():
        states.kept = containers  # what is made of their items is no copy of another state
    found: dict[str, Copy] = {}
    for attribute, each in stores.items():
        made = [(s, state) for s in each if (state := _copied(readers[s.method], s)) is not None]
        makers = {s.method for s, _ in made}
        if len(made) != 1:
            continue
        (store, state), maker = made[0], makers.pop()
        what = containers[attribute] if store.item else state.what
        other = {s.method for s in each if s is not store and not _is_empty(s.value) and not s.item}
        found[attribute] = Copy(attribute, what, state.root, store.value, maker, frozenset(other))
    return found


def _stores(method: str, states: States) -> Iterator[_Store]:
    for node in states.nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                    item = isinstance(part, ast.Subscript)
                    part = part.value if isinstance(part, ast.Subscript) else part
                    if isinstance(part, ast.Attribute) and is_self_attribute(part):
                        yield _Store(part.attr, node.value, item, method)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            kept = node.func.value
            if node.func.attr in ("append", "extend", "update") and is_self_attribute(kept):
                assert isinstance(kept, ast.Attribute)
                yield _Store(kept.attr, ast.copy_location(ast.Starred(node.args[0]), node.args[0]), True, method)


def _copied(states: States, store: _Store) -> State | None:
    """The state that a stored value is a copy of."""
    value = store.value.value if isinstance(store.value, ast.Starred) else store.value
    found = states.of(value)
    if found is None or not found.new or found.root == f"self.{store.attribute}":
        return None
    return found if (found.what == "tensor") == store.item and found.what != "pairs" else None


def _is_empty(node: ast.expr) -> bool:
    """Whether an expression is None or an empty container."""
    if isinstance(node, ast.Call):
        return not node.args and not node.keywords and last_name(node.func) in ("dict", "list", "OrderedDict")
    if isinstance(node, ast.Dict):
        return not node.keys
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.List) and not node.elts)


def taken_over(init: Function) -> Mapping[str, str]:
    """The attributes that `__init__` binds to its parameters as they are: `self.model = model`."""
    names = {a.arg for a in (*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs)}
    found: dict[str, str] = {}
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in names:
            found.update(
                {t.attr: node.value.id for t in node.targets if isinstance(t, ast.Attribute) and is_self_attribute(t)}
            )
    return found
