"""Lists that are attributes: empty when the object is made, and filled by what methods, or functions around it, append.

    self.values = []                        # in `__init__`
    self.values.append(self.critic(state))  # in one method
    values = torch.cat(self.values)         # in another

The same holds for an object of the module level: `policy.log_probs.append(x)` in one function, read in another. A list whose
class brings to the CPU all that it puts in, `self.images.append(image.cpu())`, holds tensors of the CPU, whoever calls it. So
does one that is filled from outside of its class, `self.buffer.log_probs.append(x.cpu())`, where the whole file does so with
every list under that name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import bindings_of, is_self_attribute, last_name
from devlint.facts.text.signatures import parameter_of
from devlint.facts.text.trained import stores
from devlint.facts.values import CPU, Value, grown

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


_PUTS = frozenset({"append", "appendleft", "insert", "extend", "__setitem__"})


def note(machine: Machine, path: str | None, node: ast.Call, name: str, given: list[Value]) -> None:
    """`self.values.append(x)` outside `__init__`, `policy.values.append(x)` of an object of the module level."""
    if name != "append" or path is None or not given or machine.in_init or machine.host:
        return
    key = _key(machine, path)
    if key is not None:
        machine.attribute_parts.setdefault(key, {})[machine.span(node)] = given[-1]


def filled(machine: Machine, path: str, value: Value) -> Value:
    """What an attribute holds that is an empty list at first, where every call that appends to it was seen."""
    if value.kind != "list" or value.elements != () or machine.in_init:
        return value
    kept = _kept_on_host(machine, path) or _filled_from_host(machine).get(path.rpartition(".")[2])
    if kept:
        return grown(kept)
    key = _key(machine, path)
    parts = machine.attribute_parts.get(key) if key is not None else None
    if not parts or not all(part.is_tensor and part.device for part in parts.values()):
        return value
    root, _, name = path.partition(".")
    around: ast.AST | None = machine.owner.node if root == "self" and machine.owner is not None else machine.scan.tree
    return (
        grown(parts.values()) if around is not None and _appends(machine, around, root, name) == set(parts) else value
    )


def of_object(machine: Machine, node: ast.Attribute, class_: ClassFacts) -> Value | None:
    """What a list holds that an object of the file has, `self.memory.log_probs`, and the file fills with what it brings to the
    CPU."""
    kept = _filled_from_host(machine).get(node.attr) if not machine.in_init and not machine.host else None
    return grown(kept) if kept and stores(class_, node.attr) else None


def _filled_from_host(machine: Machine) -> dict[str, list[Value]]:
    """What the lists hold that classes of the file make, by the names of attributes, of which everything is brought to the CPU
    where it is put in."""
    if machine.lists_of_host is None:
        machine.lists_of_host = {}
        sites = machine.scan.calls.get("append", ()) if "cpu" in machine.scan.calls else ()
        puts = [(site.call.func.value, site.call.args) for site in sites if isinstance(site.call.func, ast.Attribute)]
        brought: dict[str, list[ast.expr]] = {}
        for held, given in puts:
            if isinstance(held, ast.Attribute) and given and _is_brought(given[-1]):
                brought.setdefault(held.attr, []).append(given[-1])
        made = _lists_made(machine) if brought else {}
        for name, nodes in brought.items():
            if made.get(name) == len(nodes):
                because = [(machine.origin(node, "copied to the CPU and kept here"),) for node in nodes]
                machine.lists_of_host[name] = [Value("tensor", CPU, None, because=each) for each in because]
    return machine.lists_of_host


def _is_brought(node: ast.expr) -> bool:
    """Whether an expression brings a tensor to the CPU: `x.detach().cpu()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cpu"


def _lists_made(machine: Machine) -> dict[str, int]:
    """How often the file puts something into the lists that its classes make, by the names of attributes; those alone that
    nothing else is done with but to read them."""
    made: set[str] = set()
    found: dict[str, int] = {}
    others: set[str] = set()
    for node in walk(machine.scan.tree) if machine.scan.tree is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = node.func.value
            if isinstance(held, ast.Attribute) and node.func.attr in _PUTS:
                found[held.attr] = found.get(held.attr, 0) + 1
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for part, value in bindings_of(node):
                if isinstance(_whole(part), ast.Attribute):
                    is_empty = isinstance(value, ast.List) and not value.elts and part is _whole(part)
                    (made if is_empty and is_self_attribute(part) else others).add(last_name(_whole(part)))
            if isinstance(node.value, ast.Attribute):
                others.add(node.value.attr)  # it has another name, by which more may be put in
        elif isinstance(node, ast.AugAssign) and isinstance(_whole(node.target), ast.Attribute):
            others.add(last_name(_whole(node.target)))
        elif isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Store):
            return {}  # an item may be elsewhere afterwards
    return {name: count for name, count in found.items() if name in made - others}


def _key(machine: Machine, path: str) -> tuple[str, str] | None:
    """The class, or the object of the module level, and the attribute; None for any other path."""
    root, _, name = path.partition(".")
    if not name.isidentifier():
        return None
    if root == "self":
        return (machine.owner.name, name) if machine.owner is not None else None
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    if own is None or root in own.bound or root not in machine.globals or root in machine.rebound:
        return None
    return ("", path) if parameter_of(machine.function.node.args, root) is None else None  # type: ignore[union-attr]


def _appends(machine: Machine, around: ast.AST, root: str, name: str) -> set[object] | None:
    """The calls that append to `root.name` in a scope; None where it may hold anything else."""
    found: set[object] = set()
    others, grown_names = set(), set()  # second names of it, and names of lists that grow
    for node in walk(around):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTS:
            grown_names.add(last_name(node.func.value) if isinstance(node.func.value, ast.Name) else "")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
            if node.func.attr == "append" and _root(node.func.value) == root:
                found.add(machine.span(node))
            elif node.func.attr in ("append", "extend", "insert"):
                return None
        elif isinstance(node, ast.AugAssign) and _is(node.target, name):
            return None
        elif isinstance(node, ast.Assign) and any(_is(target, name) for target in node.targets):
            if not isinstance(node.value, ast.List) or node.value.elts:
                return None
        elif isinstance(node, ast.Assign) and _is(node.value, name):
            others |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is(node.value, name):
            return None
        elif isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Store):
            return None  # an item may be elsewhere afterwards
    return found if others.isdisjoint(grown_names) else None


def _kept_on_host(machine: Machine, path: str) -> list[Value]:
    """What `self.name` holds where the class brings to the CPU all that it puts in; nothing where it may hold anything else."""
    root, _, name = path.partition(".")
    if (
        root != "self"
        or machine.owner is None
        or machine.host
        or machine.owner.abroad
        or "cpu" not in machine.scan.calls
    ):
        return []
    key = (machine.owner.name, name)
    if key not in machine.host_lists:
        put = list(_put(machine.owner.node, name))
        brought = [node for node in put if isinstance(node, ast.Call) and last_name(node.func) == "cpu"]
        if not brought or len(brought) < len(put) or _is_filled_elsewhere(machine, machine.owner, name):
            brought = []
        machine.host_lists[key] = [
            Value("tensor", CPU, None, because=(machine.origin(node, "copied to the CPU and kept here"),))
            for node in brought
        ]
    return machine.host_lists[key]


def _put(around: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """What is put into a list under an attribute's name; None for several things at once."""
    for node in walk(around):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
            if node.func.attr in _PUTS:
                yield node.args[-1] if node.args and node.func.attr != "extend" else None
        elif isinstance(node, ast.AugAssign) and _is(_whole(node.target), name):
            yield None
        elif isinstance(node, ast.Assign) and any(_is(_whole(target), name) for target in node.targets):
            if not isinstance(node.value, ast.List) or node.value.elts:
                yield node.value
        elif isinstance(node, ast.Assign) and _is(node.value, name):
            yield None  # what is put in by another name
        elif isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Store):
            yield None  # an item may be elsewhere afterwards


def _is_filled_elsewhere(machine: Machine, owner: ClassFacts, name: str) -> bool:
    """Whether other code of the file may put something into a list that objects of a class have."""
    if any(owner in lineage(each)[1:] for each in tuple(machine.classes.values())):
        return True
    inside = set(map(id, walk(owner.node)))
    called = (call for method in _PUTS for call, _ in machine.scan.calls.get(method, ()))
    puts = (call.func.value for call in called if isinstance(call.func, ast.Attribute) and id(call) not in inside)
    return any(last_name(node) == name and not is_self_attribute(node) for node in puts) or any(
        target.attr == name and not is_self_attribute(target)
        for function in machine.scan.functions.values()
        for target in function.stores
    )


def _whole(node: ast.expr) -> ast.expr:
    """What an item is stored into; the target itself where it is no item."""
    return node.value if isinstance(node, ast.Subscript) else node


def _is(node: ast.expr, name: str) -> bool:
    """Whether an expression is the attribute of that name of a variable."""
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name)


def _root(node: ast.expr) -> str:
    return getattr(getattr(node, "value", None), "id", "")
