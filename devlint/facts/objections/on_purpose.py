"""What the code puts somewhere on purpose: copies into new tensors of the host, and state that follows another tensor.

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from devlint.facts.events import Meet, Use
from devlint.facts.text.classes import lineage
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, is_own_attribute, is_self_attribute, last_name
from devlint.facts.text.returned import own_nodes
from devlint.facts.text.signs import moves

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites

#: Methods by which objects bring what they hold to the host.
_TO_HOST_METHODS = ("cpu", "to_cpu", "_to_cpu", "to_host", "_to_host", "offload")


def is_copied_to_host(sites: CallSites, event: Meet) -> bool:
    """Whether a new tensor in the size of another one is there to be filled with its values: `kept.copy_(state)`, or to gather
    what is brought to the host: `total[:, i].add_(part)` after `part = model(x).cpu()`.

    `copy_` is for tensors on two devices; who wants a tensor beside the other one clones it. The function that makes the
    tensor may hand it to the one that it leaves.
    """
    made = event.off.value.made if event.how in ("size", "copy") else ()
    own = sites.body(event.function)
    around = [each.node for creation in made for each in sites.functions_around(creation.span.start)]
    found = False
    for function in {id(each): each for each in (own, *around) if each is not None and made}.values():
        names = bound_to(function, [creation.place for creation in made])
        if not names <= filled(function) | gathered(sites, function):
            return False
        found = found or bool(names)
    return found


def is_tried_again(sites: CallSites, event: Use) -> bool:
    """Whether the host's read of a tensor stands in a `try`, and the function also reads it by way of the CPU.

    `try: f(x.numpy())`, `except: f(x.cpu().numpy())`: the error is awaited.
    """
    body = sites.body(event.function)
    if body is None or not event.under.catches("TypeError", "RuntimeError"):
        return False
    *_, start = chain(event.operand.node)
    moved = (n.func for n in walk(body) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    text = ast.dump(start)
    return any(each.attr == "cpu" and ast.dump([*chain(each)][-1]) == text for each in moved)


def is_brought_by_method(sites: CallSites, event: Use) -> bool:
    """Whether a class has a method that brings the attribute which another one reads to the host: `to_cpu`.

    It binds the attribute to the copy, or makes an object of the class of it. The reading method does not bind it.
    """
    class_, function = sites.class_of(event.function), sites.body(event.function)
    path = [*chain(event.operand.node)]
    attribute = path[-2] if len(path) > 1 and is_self_attribute(path[-2]) else None
    if class_ is None or function is None or event.level != "assume" or not isinstance(attribute, ast.Attribute):
        return False
    own = [node for node in walk(function) if is_own_attribute(node, attribute.attr)]
    if class_.is_module or any(not isinstance(getattr(node, "ctx", None), ast.Load) for node in own):
        return False
    methods = [found[1] for name in _TO_HOST_METHODS if (found := class_.method(name)) is not None]
    return any(
        any(is_own_attribute(part, attribute.attr) for part in chain(value))
        for method in methods
        for value in kept_of(method, attribute.attr, class_.name)
        if is_brought(value)
    )


def kept_of(method: ast.AST, attribute: str, class_name: str) -> Iterator[ast.expr]:
    """What a method binds an attribute of `self` to, or makes other objects of the class of."""
    for node in walk(method):
        if isinstance(node, ast.Assign) and any(is_own_attribute(target, attribute) for target in node.targets):
            yield node.value
        elif isinstance(node, ast.Call) and last_name(node.func) in (class_name, "replace", "cls", "__class__"):
            yield from (*node.args, *(each.value for each in node.keywords))


def bound_to(function: ast.AST, made: list[ast.Call]) -> set[str]:
    """The names that a function binds to what some calls make."""
    return named_where(function, lambda value: any(value is place for place in made))


def named_where(function: ast.AST, holds: Callable[[ast.expr], bool]) -> set[str]:
    """The names that a function binds to values of which something holds."""
    bound = [n for n in walk(function) if isinstance(n, ast.Assign) and holds(n.value)]
    return {t.id for n in bound for t in n.targets if isinstance(t, ast.Name)}


def filled(function: ast.AST) -> set[str]:
    """The names of what a function copies something into: `kept.copy_(state)`."""
    return {
        last_name(node.func.value)
        for node in walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_"
    }


def gathered(sites: CallSites, function: ast.AST) -> set[str]:
    """The names of what a function fills with values that it brought to the host: `x = model(x).cpu(); total.add_(x)`,
    `total += x`, `total[i] = x`.

    Also with what a function of the project gives that does so on one path at least.
    """
    on_host = named_where(function, partial(is_of_host, sites))
    return {
        target.id
        for whole, value in written(function)
        if isinstance(target := whole_of(whole), ast.Name)
        if (value.id in on_host if isinstance(value, ast.Name) else is_of_host(sites, value))
    }


def written(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a function writes into in place, each with what is written or added: items, and whole tensors that it adds to."""
    for node in walk(function):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "add_" and node.args:
                yield node.func.value, node.args[0]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield node.target, node.value
        elif isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets if isinstance(target, ast.Subscript))


def whole_of(node: ast.expr) -> ast.expr:
    """What an expression takes items of: `total` of `total[0][:, i]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def is_of_host(sites: CallSites, node: ast.expr) -> bool:
    """Whether an expression brings something to the CPU, or calls a function of the project that does and returns it."""
    if is_brought(node):
        return True
    name = ast.unparse(node.func) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return any(map(gives_back_brought, sites.named(name))) if name else False


def gives_back_brought(function: ast.AST) -> bool:
    """Whether a function returns, on one path at least, what it brought to the CPU, or a part of that."""
    brought = named_where(function, is_brought)
    results = [n.value for n in own_nodes(function) if isinstance(n, ast.Return) and n.value is not None]
    return any(
        is_brought(each) or (isinstance(root := whole_of(each), ast.Name) and root.id in brought) for each in results
    )


def is_brought(node: ast.expr) -> bool:
    """Whether a chain of calls brings its object to the CPU, and nowhere else after that: `model(x).cpu().float()`."""
    for part in chain(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            if moves(part):
                return False
            named = [a.value for a in part.args if isinstance(a, ast.Constant)]
            if part.func.attr == "cpu" or (part.func.attr == "to" and named[:1] == ["cpu"]):
                return True
            if part.func.attr in TO_HOST:
                return False  # no tensor any more
    return False


def is_rehomed(sites: CallSites, event: Meet) -> bool:
    """Whether a method of the class puts the attribute that is left behind on the device of something else, where it is not:
    `if x.device != self.mask.device: self.mask = self.mask.to(x.device)`.
    """
    class_ = sites.class_of(event.function)
    names = {n.attr for n in walk(event.off.node) if isinstance(n, ast.Attribute) and is_self_attribute(n)}
    if class_ is None or not names:
        return False
    found = {
        name
        for each in lineage(class_)
        for method in each.methods.values()
        for node in walk(method)
        if isinstance(node, ast.If) and compares_devices(node.test)
        for name in names.intersection(bound_in(node.body))
        if any(is_self_attribute(n) and getattr(n, "attr", "") == name for n in walk(node.test))
    }
    return bool(found)


def compares_devices(test: ast.expr) -> bool:
    """Whether a condition asks whether two devices differ."""
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.NotEq, ast.IsNot))
        and all(last_name(side).endswith("device") for side in (node.left, node.comparators[0]))
        for node in walk(test)
    )


def bound_in(body: list[ast.stmt]) -> Iterator[str]:
    """The attributes of `self` that statements bind, as a whole or in part."""
    for statement in body:
        for node in walk(statement):
            for target in map(whole_of, node.targets) if isinstance(node, ast.Assign) else ():
                if is_self_attribute(target):
                    yield last_name(target)
