"""How a local name is read: whether all that becomes of a tensor is numbers and text of the host."""

from __future__ import annotations

import ast

from devlint.facts.text.method_names import OUT_OF_TORCH

_NUMBERS = frozenset({"int", "float", "bool", "len", "print", "str", "repr", "range", "list", "round"})


def only_on_host(scope: ast.AST, name: str) -> bool:
    """Whether a name is only written into, and read by `.tolist()`, `.item()`, `int(...)`, `print(...)` and the like.

    `scope`: the function, or the module, whose text is looked at; bindings of the name do not count.
    """
    told: set[int] = set()
    written: set[int] = set()
    loads: list[ast.Name] = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Name):
            if node.id == name and isinstance(node.ctx, ast.Load):
                loads.append(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            written.add(id(root_of(node)))
        elif isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr in OUT_OF_TORCH:
                told.add(id(root_of(function)))
            elif isinstance(function, ast.Name) and function.id in _NUMBERS:
                told.update(id(root_of(argument)) for argument in node.args)
    reads = [node for node in loads if id(node) not in written]
    return bool(reads) and all(id(node) in told for node in reads)


def root_of(node: ast.expr) -> ast.expr:
    """What a chain of calls, attributes and subscripts starts from."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func
        else:
            return node
