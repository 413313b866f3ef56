"""Loops that go through all items of a container: a loop that rebinds each item has replaced all of them at its end."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from devlint.inference.objects.heap import ITEM
from devlint.inference.summary.dispatch import evaluate, silent
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.conditions import Condition
from devlint.inference.terms.places import nowhere
from devlint.inference.terms.values import Value, merge

#: Calls that go through the same items as their first argument [Python's library reference, "Built-in Functions"; tqdm].
_SAME_ITEMS = frozenset({"list", "tuple", "sorted", "reversed", "iter", "set", "tqdm"})


@dataclass(eq=False, slots=True)
class Walk:
    """One loop through all items of `container`. `keys` and `items`: the names that hold the key and the item of a round.

    `under`: the conditions under which a store counts for every item that is a tensor. `stored`: what was stored.
    `partial`: whether something was stored for some items alone. `itself`: whether the container is one of the items
    [torch.nn.Module.modules].
    """

    container: ast.expr
    keys: frozenset[str]
    items: frozenset[str]
    under: set[Condition] = field(default_factory=set)
    stored: Value | None = None
    partial: bool = False
    itself: bool = False

    def is_item(self, node: ast.expr) -> bool:
        """Whether an expression is the item of this round."""
        if isinstance(node, ast.Name):
            return node.id in self.items
        return isinstance(node, ast.Subscript) and self.is_entry(node)

    def is_entry(self, node: ast.Subscript) -> bool:
        """Whether this is `container[key]` with the key of this round."""
        has_key = isinstance(node.slice, ast.Name) and node.slice.id in self.keys
        return has_key and ast.unparse(node.value) == ast.unparse(self.container)


def walk_of(through: ast.expr, target: ast.expr) -> Walk | None:
    """The walk of `for target in through`, where its form says that every item has its turn."""
    if isinstance(through, ast.Call) and not through.keywords and len(through.args) == 1:
        inner = through.args[0]
        name = through.func.id if isinstance(through.func, ast.Name) else ""
        if name in _SAME_ITEMS:
            return walk_of(inner, target)
        if name == "enumerate":
            return _pairs(inner, target)
        if name == "range" and isinstance(inner, ast.Call) and inner.args:
            if isinstance(inner.func, ast.Name) and inner.func.id == "len":
                return Walk(inner.args[0], _names(target), frozenset())
    if isinstance(through, ast.Call) and isinstance(through.func, ast.Attribute) and not through.args:
        container = through.func.value
        if through.func.attr == "items":
            return _pairs(container, target)
        if through.func.attr == "keys":
            return Walk(container, _names(target), frozenset())
        if through.func.attr in ("values", "children", "modules"):
            return Walk(container, frozenset(), _names(target), itself=through.func.attr == "modules")
        return None
    return Walk(through, _names(target), _names(target)) if isinstance(through, (ast.Name, ast.Attribute)) else None


def _pairs(container: ast.expr, target: ast.expr) -> Walk | None:
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    return Walk(container, _names(target.elts[0]), _names(target.elts[1]))


def _names(target: ast.expr) -> frozenset[str]:
    return frozenset({target.id}) if isinstance(target, ast.Name) else frozenset()


def note_store(frame: Frame, target: ast.Subscript, value: Value) -> None:
    """An item is rebound: in a loop through all items this may be every one of them."""
    for walk in frame.walks:
        if not walk.is_entry(target):
            continue
        if frame.condition in walk.under:
            walk.stored = value if walk.stored is None else merge(walk.stored, value)
        else:
            walk.partial = True


def note_test(frame: Frame, node: ast.expr) -> None:
    """From here on the item of this round is known to be a tensor: a store under this condition leaves none out."""
    for walk in frame.walks:
        if walk.is_item(node):
            walk.under.add(frame.condition)


def walks_over(frame: Frame, node: ast.expr) -> list[Walk]:
    """The walks in which an expression is, in turn, every item of a container, whatever else is tested."""
    return [walk for walk in frame.walks if walk.is_item(node) and frame.condition in walk.under]


def container_of(frame: Frame, walk: Walk) -> Value:
    """What a walk goes through."""
    with silent(frame):
        return evaluate(frame, walk.container)


def close(frame: Frame, walk: Walk) -> None:
    """The loop is over: what its container holds now."""
    if walk.stored is None and not walk.partial:
        return
    container = container_of(frame, walk)
    if walk.stored is not None and walk.stored.kind == "module":
        return  # modules are moved in place
    new = walk.stored if walk.stored is not None and not walk.partial else Value("unknown", nowhere())
    for identity in container.objects:
        thing = frame.heap.get(identity)
        fields = {entry: value for entry, value in thing.fields.items() if not entry.startswith("[")}
        frame.heap.put(identity, thing._replace(fields={**fields, ITEM: new}))
    if not container.objects and isinstance(walk.container, ast.Name) and container.places:
        frame.state.names[walk.container.id] = container._replace(places=new.places or nowhere(), path=None)
