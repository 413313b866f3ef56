"""Dicts and lists that hooks alone fill with tensors that they see: on the CPU, or where the model computes.

    features = {}

    def keep(name):
        def hook(module, inputs, output):
            features[name] = output.detach().cpu()
        return hook

    teacher.layer3.register_forward_hook(keep("layer3"))
    teacher(x)
    loss = (student(x) - features["layer3"]).mean()

Known where all that the file does with the name is to make it empty, to fill it in functions that it registers as hooks, and to
read it, and where the hooks agree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.idioms.placed import goes_back
from devlint.facts.text.method_names import OFF_HOST, SAME_PLACE
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import bindings_of, chain, is_self_attribute, last_name
from devlint.facts.text.returned import own_nodes
from devlint.facts.text.signatures import positional_names
from devlint.facts.text.signs import moves
from devlint.facts.values import CPU, UNKNOWN, Device, Value, grown, may_be_accelerator
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.scan import Site

REGISTER = ("register_forward_hook", "register_forward_pre_hook")
#: What leaves a tensor where it is, and one with dimensions.
_SAME = SAME_PLACE | {"data"}
#: What reads a container, or what it holds, and leaves both as they are.
_READS = frozenset({"len", "list", "tuple", "sorted", "print", "enumerate", "zip", "cat", "stack", "concat"})
_Hook = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def held(machine: Machine, node: ast.expr, value: Value) -> Value:
    """What a dict or a list holds, a name or an attribute of `self`, that is empty by all that is known of it."""
    if value.kind not in ("dict", "list") or value.elements or machine.host:
        return value
    if machine.hook_stores is None:
        machine.hook_stores = stores(machine)
    puts = machine.hook_stores.get(path_of(node))
    kept = kept_by(machine, puts) if puts else None
    if kept is None:
        return value
    return grown([kept]) if value.kind == "list" else Value("dict", type_name="comprehension", elements={"*": kept})


def kept_by(machine: Machine, puts: list[tuple[ast.expr, bool, ast.expr]]) -> Value | None:
    """What hooks keep that agree: all bring it to the CPU, or all leave it where one model computes."""
    where = {on_host for _, on_host, _ in puts}
    if len(where) != 1:
        return None
    node, on_host, _ = puts[0]
    if on_host:
        return Value("tensor", CPU, False, because=(machine.origin(node, "copied to the CPU and kept here"),))
    devices = {device_of(machine, model) for _, _, model in puts}
    device = devices.pop() if len(devices) == 1 else UNKNOWN
    if not may_be_accelerator(device):
        return None
    because = (Origin(machine.span(node), "kept by a hook, on the device of the model"),)
    return Value("tensor", device, False, because=because)


def device_of(machine: Machine, node: ast.expr) -> Device:
    """Where the module is of which an expression is a part: `net.layer3`."""
    for part in chain(node):
        path = machine.path(part)
        known = machine.lookup(path) if path is not None else None
        if known is not None and known.kind == "module" and not known.shared:
            return known.device
    return UNKNOWN


def stores(machine: Machine) -> dict[str, list[tuple[ast.expr, bool, ast.expr]]]:
    """What hooks put into containers, by the names of these, with whether it is on the CPU and what the hook is registered at.

    Without those that anything else fills.
    """
    found: dict[str, list[tuple[ast.expr, bool, ast.expr]]] = {}
    seen: dict[str, set[int]] = {}  # the nodes that fill, by identity
    spoiled: set[str] = set()
    for site in (site for name in REGISTER for site in machine.scan.calls.get(name, ())):
        call = site.call
        hook = hook_of(machine, call.args[0]) if call.args else None
        if hook is None or not isinstance(call.func, ast.Attribute):
            continue
        is_gone = is_removed_before_move(machine, site, call.func.value)
        given = set(
            positional_names(hook.args)[-2:] if call.func.attr == REGISTER[0] else positional_names(hook.args)[-1:]
        )
        rebound = {n.id for n in walk(hook) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        given -= rebound  # what the hook has made of it is not followed
        for filled, put in fills(hook):
            name = path_of(filled)
            if not name:
                continue
            seen.setdefault(name, set()).add(id(filled))
            on_host = kept_on_host(put, given)
            if on_host is None or (is_gone and not on_host):
                spoiled.add(name)
            else:
                found.setdefault(name, []).append((put, on_host, call.func.value))
    if not found or machine.scan.tree is None:
        return {}
    made: set[str] = set()
    for node in walk(machine.scan.tree):
        if isinstance(node, ast.Call):  # what takes a container may fill it, or move what it holds
            handed = {path_of(each) for each in (*node.args, *(keyword.value for keyword in node.keywords))}
            spoiled |= handed.intersection(found) if last_name(node.func) not in _READS else set()
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return)) and node.value is not None:
            spoiled |= {path_of(node.value)} & found.keys()  # another name for it
        elif isinstance(node, ast.Attribute) and f"self.{node.attr}" in found and not is_self_attribute(node):
            spoiled.add(f"self.{node.attr}")
    for node in statements(machine.scan.tree):
        for target, value in bindings_of(node):
            name = path_of(target)
            if name in found:
                (made if is_empty(value) and name not in made else spoiled).add(name)
        for filled, _ in fills_of(node):
            name = path_of(filled)
            if name in found and id(filled) not in seen[name]:
                spoiled.add(name)
    return {name: puts for name, puts in found.items() if name in made and name not in spoiled}


def is_removed_before_move(machine: Machine, site: Site, module: ast.expr) -> bool:
    """Whether the code that registers a hook removes one, and moves the module below that: what it kept stays where it was.

    `handle.remove()`, which lists have with an argument alone. `module`: what the hook is registered at. It is moved with
    what it is written as a part of, and with what the code runs before it removes the hook, whatever that is called. Not where
    the code has moved it above as well.
    """
    removed = [
        each.call.lineno
        for each in machine.scan.calls.get("remove", ())
        if each.caller is site.caller and not each.call.args and each.call.lineno > site.call.lineno
    ]
    around = site.caller.node if site.caller is not None else machine.scan.tree
    if not removed or around is None:
        return False
    first, hooked = min(removed), ast.unparse(module)
    moved: dict[bool, set[str]] = {False: set(), True: set()}  # whether it is below the place where the hook is removed
    for each in (each for name in OFF_HOST for each in machine.scan.calls.get(name, ())):
        if each.caller is site.caller and moves(each.call):
            moved[each.call.lineno > first].add(receiver_of(each.call))
    for node in statements(around) if moved[True] else ():
        if isinstance(node, ast.Assign) and any(isinstance(p, ast.Call) and moves(p) for p in chain(node.value)):
            moved[node.lineno > first].update(map(ast.unparse, node.targets))
    ran = {
        ast.unparse(node.func)
        for node in (walk(around) if moved[True] else ())
        if isinstance(node, ast.Call) and site.call.lineno < node.lineno < first
    }
    holders = {each for each in moved[True] if is_part(hooked, each) or each in ran}
    return bool(holders) and not any(
        is_part(hooked, early) or is_part(late, early) for early in moved[False] for late in holders
    )


def receiver_of(call: ast.Call) -> str:
    """What a call of a method is made on, as it is written, without the calls between: `net` of `net.eval().cuda()`."""
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return ast.unparse(node)


def is_part(part: str, whole: str) -> bool:
    """Whether a path names something, or a part of it: `net.layer3`, `net[0]`."""
    return part == whole or part.startswith((f"{whole}.", f"{whole}["))


def hook_of(machine: Machine, node: ast.expr) -> _Hook | None:
    """The function that an expression gives as a hook: one by its name, or what a function by its name makes."""
    if isinstance(node, ast.Lambda):
        return node
    maker = node.func if isinstance(node, ast.Call) else node
    name = last_name(maker)
    if not isinstance(maker, ast.Name) and not is_self_attribute(maker):
        return None
    of_class = isinstance(maker, ast.Attribute)
    named = [
        each.node
        for each in machine.scan.functions.values()
        if getattr(each.node, "name", "") == name and of_class is (each.owner is not None and each.is_outermost)
    ]
    if len(named) != 1 or not isinstance(named[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    function = named[0]
    if not isinstance(node, ast.Call):
        return function
    returned = [each.value for each in own_nodes(function) if isinstance(each, ast.Return)]
    if len(returned) != 1:
        return None
    if isinstance(returned[0], ast.Lambda):
        return returned[0]
    inner = [each for each in statements(function) if isinstance(each, ast.FunctionDef) and each is not function]
    return next((each for each in inner if isinstance(returned[0], ast.Name) and each.name == returned[0].id), None)


def fills(hook: _Hook) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a hook puts something into, with what it puts there."""
    if isinstance(hook, ast.Lambda):
        yield from puts_in(hook.body)
        return
    for node in statements(hook):
        yield from fills_of(node)


def fills_of(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The same of one statement: `kept[name] = output`, `kept.append(output)`."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                yield target.value, node.value
            elif isinstance(node, ast.AugAssign):
                yield target, node.value
    elif isinstance(node, ast.Expr):
        yield from puts_in(node.value)


def puts_in(node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr in ("append", "extend", "insert", "update", "setdefault", "appendleft"):
            # what is put in several at a time, or under a key, is not told apart
            yield node.func.value, node.args[0] if node.func.attr == "append" else ast.Constant(None)


def kept_on_host(node: ast.expr, given: set[str]) -> bool | None:
    """Whether a tensor that a hook is given is brought to the CPU; None for what is no such tensor."""
    on_host = False
    for part in chain(node):
        if isinstance(part, ast.Name):
            return on_host if part.id in given else None
        if isinstance(part, ast.Call):
            if goes_back(part):
                on_host = True
            elif not isinstance(part.func, ast.Attribute) or part.func.attr not in _SAME:
                return None
        elif isinstance(part, ast.Attribute):
            if part.attr not in _SAME and part.attr not in ("cpu", "to"):
                return None
        elif not isinstance(part, ast.Subscript) or not isinstance(part.slice, ast.Constant):
            return None
    return None


def path_of(node: ast.expr) -> str:
    """A name, or an attribute of `self`, as it is written; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return f"self.{node.attr}" if isinstance(node, ast.Attribute) and is_self_attribute(node) else ""


def is_empty(node: ast.expr) -> bool:
    """Whether an expression makes an empty container: `{}`, `[]`, `dict()`, `OrderedDict()`."""
    if isinstance(node, ast.Dict):
        return not node.keys
    if isinstance(node, ast.List):
        return not node.elts
    return isinstance(node, ast.Call) and not node.args and last_name(node.func) in ("dict", "list", "OrderedDict")
