"""Classes of a script into which it loads all its weights, on the CPU in so many words, and which nothing can move.

    class Recurrent(torch.jit.ScriptModule):
        def __init__(self, path):
            super().__init__()
            self.w = types.SimpleNamespace()      # no parameter, no buffer, no module
            for name, weight in torch.load(path, map_location="cpu").items():
                setattr(self.w, name, weight)

    model = Recurrent("weights.pth")              # the module level alone makes it, and calls its methods

Nothing is concluded where other code gets such an object, or the script loads anything elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from devlint.facts.idioms.placed import is_cpu
from devlint.facts.objections.programs import places
from devlint.facts.text.method_names import REGISTERS
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import chain, is_self, is_self_attribute, last_name
from devlint.facts.text.scan import Scan, Site
from devlint.facts.text.signatures import parameter_names

_NAMESPACE = "SimpleNamespace"
#: What attributes may be made by: nothing that has parameters.
_PLAIN = frozenset({_NAMESPACE, "load", "dict", "list", "len", "int"})
#: What such a script has none of.
_NEVER = ("load_state_dict", "set_default_device", "set_default_tensor_type")


def classes_on_host(scanned: Scan, imports: Mapping[str, str]) -> frozenset[str]:
    """The names of such classes of a script that nothing imports. `imports`: the qualified names behind its own."""
    sites, tree = scanned.calls.get("load", ()), scanned.tree
    if tree is None or not sites or any(name in scanned.calls for name in _NEVER):
        return frozenset()
    if not all(any(k.arg == "map_location" and is_cpu(k.value) for k in site.call.keywords) for site in sites):
        return frozenset()
    owners = [site.caller.owner if site.caller is not None else None for site in sites]
    for each in owners:
        if (
            each is None
            or each not in tree.body
            or not is_plain(tree, each, imports)
            or not is_kept(scanned, each.name)
        ):
            return frozenset()
    return frozenset() if places(tree) else frozenset(each.name for each in owners if each is not None)


def is_plain(tree: ast.Module, class_: ast.ClassDef, imports: Mapping[str, str]) -> bool:
    """Whether a class has torch's bases alone, keeps nothing with parameters, and hands its objects to no other code."""
    if class_.decorator_list or class_.keywords or not all(is_of_torch(tree, base, imports) for base in class_.bases):
        return False
    for method in class_.body:
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and parameter_names(method)[:1] != ["self"]:
            return False
    nodes = list(walk(class_))
    held = {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Name) and is_self(node) and id(node) not in held:
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_self(node.func.value):
            if node.func.attr in REGISTERS or node.func.attr.startswith("register"):
                return False
    return all(is_plain_statement(statement) for statement in statements(class_))


def is_plain_statement(statement: ast.AST) -> bool:
    """Whether a statement binds no attribute of `self`, or makes it of what has no parameters."""
    if not isinstance(statement, ast.stmt) or isinstance(
        statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    ):
        return True
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if not any(is_self_attribute(part) for target in targets for part in walk(target)):
            return True
        calls = walk(statement.value) if statement.value is not None else ()
        return all(last_name(each.func) in _PLAIN for each in calls if isinstance(each, ast.Call))
    given: list[ast.expr | None] = []
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        given = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        given = [item.optional_vars for item in statement.items]
    return not any(is_self_attribute(part) for target in given if target is not None for part in walk(target))


def is_of_torch(tree: ast.Module, base: ast.expr, imports: Mapping[str, str]) -> bool:
    """Whether a base is a class of torch, also where the file gives it a name: `MyModule = torch.jit.ScriptModule`."""
    if isinstance(base, ast.Name) and base.id not in imports:
        values = list(bound_to(tree, base.id))
        return bool(values) and all(is_of_torch(ast.Module([], []), value, imports) for value in values)
    *_, start = chain(base)
    return isinstance(start, ast.Name) and imports.get(start.id, "").split(".")[0] == "torch"


def bound_to(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    """What the assignments to a name at the module level give it."""
    for statement in statements(tree):
        if isinstance(statement, ast.Assign):
            if any(isinstance(target, ast.Name) and target.id == name for target in statement.targets):
                yield statement.value


def is_kept(scanned: Scan, name: str) -> bool:
    """Whether a script makes objects of a class at its module level alone, of plain values, and only calls their methods."""
    tree, sites = scanned.tree, scanned.calls.get(name, ())
    if tree is None or not sites or any(not is_made_plainly(tree, site) for site in sites):
        return False
    made = {id(site.call): site.call for site in sites}
    keepers = {
        statement.targets[0].id: made.pop(id(statement.value))
        for statement in statements(tree)
        if isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and id(statement.value) in made
    }
    if made:
        return False
    called = {id(call.func) for call in scanned.every_call}
    called |= {id(call.func.value) for call in scanned.every_call if isinstance(call.func, ast.Attribute)}
    read = (n for n in walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return all(id(node) in called for node in read if node.id == name or node.id in keepers)


def is_made_plainly(tree: ast.Module, site: Site) -> bool:
    """Whether a call at the module level is given constants and namespaces alone, by their names or not."""
    call = site.call
    if site.caller is not None or not isinstance(call.func, ast.Name):
        return False
    for each in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(each, ast.Constant):
            continue
        values = list(bound_to(tree, each.id)) if isinstance(each, ast.Name) else []
        if not values or not all(map(is_plain_value, values)):
            return False
    return True


def is_plain_value(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Call) and last_name(node.func) == _NAMESPACE and not node.args and not node.keywords
    )
