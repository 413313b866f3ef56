"""Whether the call of a module, or of one of its methods, meets tensors of the module.

A module without a parameter, a buffer or a part is nowhere: `.to(device)` moves nothing, and what it is given meets nothing.
So it is with a method that reads none of them.
"""

from __future__ import annotations

import ast

from devlint.facts.callers import is_static
from devlint.facts.classes import ClassFacts
from devlint.facts.nodes import walk
from devlint.facts.signatures import Plain, default_of
from devlint.facts.values import Value

DEPTH = 3  # methods that call each other
_MODULES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "object"})
#: Kinds of attributes that a module does not move and that meet no tensor.
_PLAIN = frozenset({"number", "string", "bool", "none", "function", "class", "dtype", "namespace", "clock"})
_SCALARS = frozenset({"int", "float", "str", "bool", "dict", "list", "set", "tuple", "len"})
_REGISTERS = frozenset(
    {
        "register_buffer", "register_parameter", "register_module", "add_module", "setattr", "__setattr__", "__dict__",
        "_modules", "_parameters", "_buffers", "__getattr__",
    }
)  # fmt: skip


def family(class_: ClassFacts) -> list[ClassFacts] | None:
    """A class and all its bases; None where a base is not known."""
    found = [class_]
    if len([base for base in class_.bases if base not in _MODULES]) != len(class_.local_bases):
        return None
    for base in class_.local_bases:
        above = family(base)
        if above is None:
            return None
        found += above
    return found


def holds_nothing(class_: ClassFacts) -> bool:
    """Whether objects of a module's class have no parameter, no buffer and no part that may have some."""
    whole = family(class_) if class_.is_module else None
    if whole is None:
        return False
    for each in whole:
        if not each.methods or each.node.decorator_list:
            return False
        for node in walk(each.node):
            if isinstance(node, ast.Attribute) and node.attr in _REGISTERS:
                return False
            if isinstance(node, ast.Name) and node.id in _REGISTERS:
                return False
        for method in each.methods.values():
            for node in walk(method):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    if not is_plain(each, method, node):
                        return False
    return True


def is_plain(class_: ClassFacts, method: Plain, target: ast.Attribute) -> bool:
    """Whether what a method binds to an attribute is no tensor and no module."""
    for node in walk(method):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and node.targets[0] is target:
            return is_plain_value(class_, method, node.value, target.attr)
        if isinstance(node, ast.AnnAssign) and node.target is target:
            return node.value is not None and is_plain_value(class_, method, node.value, target.attr)
    return False


def is_plain_value(class_: ClassFacts, method: Plain, node: ast.expr, name: str) -> bool:
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare, ast.Lambda)):
        return True
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return all(is_plain_value(class_, method, each, "") for each in node.elts)
    if isinstance(node, ast.Dict):
        return all(is_plain_value(class_, method, each, "") for each in node.values)
    if isinstance(node, ast.Name):
        spec = method.args
        given = next((a for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == node.id), None)
        if given is not None:
            said = given.annotation
            return (isinstance(said, ast.Name) and said.id in ("int", "float", "str", "bool")) or is_number(
                method, node.id
            )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SCALARS:
        return all(is_plain_value(class_, method, each, "") for each in node.args)
    known = class_.attribute(name) if name else None
    return known is not None and is_no_tensor(known)


def is_number(method: Plain, name: str) -> bool:
    """Whether the default of a parameter says that it is a number, a text or a flag."""
    default = default_of(method.args, name)
    return isinstance(default, ast.Constant) and default.value is not None


def is_no_tensor(value: Value) -> bool:
    """Whether a value is neither a tensor nor a module, nor holds one."""
    if value.kind in _PLAIN:
        return True
    if value.kind == "object":
        return value.type_name is not None and not value.elements
    return False


def reads_state(class_: ClassFacts, node: Plain, depth: int = 0) -> bool:
    """Whether a method reads what may be a tensor or a module of its object, or hands the object on."""
    if is_static(node):
        return False
    spec = node.args
    plain = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    if not plain or depth > DEPTH or node.decorator_list:
        return True
    own = {id(n.value): n for n in walk(node) if isinstance(n, ast.Attribute)}
    for name in walk(node):
        if not isinstance(name, ast.Name) or name.id != plain[0]:
            continue
        read = own.get(id(name))
        if read is None:
            return True
        method = class_.method(read.attr)
        if method is not None:
            if reads_state(method[0], method[1], depth + 1):
                return True
            continue
        known = class_.attribute(read.attr)
        if known is None or not is_no_tensor(known):
            return True
    return False
