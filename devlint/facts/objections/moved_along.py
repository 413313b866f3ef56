"""Plain tensors of a module that the module which holds it moves along, in another file of the project.

    class Model(nn.Module):
        def _apply(self, fn):
            self = super()._apply(fn)
            self.head.grid = list(map(fn, self.head.grid))   # the head keeps `grid` as a plain list
            return self

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING

from devlint.facts.objections.ways import leads_to
from devlint.facts.text.nodes import classes, statements, walk
from devlint.facts.text.references import is_self_attribute

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Register

_FILES = 6  # that are read for one attribute
#: Methods of a module that move its parts: `_apply` runs in all others of them.
_MOVING = ("_apply", "to", "cuda")


def is_moved_along(sites: CallSites, event: Register) -> bool:
    """Whether a class moves an attribute of that name in its `_apply`, in a file that leads to the module's by its imports."""
    name = event.attribute
    paths = set(sites.files.mentioned_in("_apply")).intersection(sites.files.mentioned_in(name))
    near = os.path.dirname(sites.path)
    ordered = sorted(paths, key=lambda path: (-len(os.path.commonpath([os.path.dirname(path), near])), path))
    for path in ordered[:_FILES]:
        looked = sites.files.look(path)
        for class_ in classes(looked.loaded.tree) if looked is not None else ():
            movers = [method for method in class_.body if is_mover(method) and moves(method, name, True)]
            is_own = bool(movers) and looked is not None and sites.derives(looked, class_, event.class_name)
            if any(is_own or moves(method, name, False) for method in movers):
                if leads_to(sites, path, sites.path):
                    return True
                break
    return False


def is_mover(node: ast.stmt) -> bool:
    """Whether a statement of a class defines a method that moves its objects."""
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in _MOVING


def moves(method: ast.AST, name: str, is_own: bool) -> bool:
    """Whether a method makes an attribute of another object, or items or the data of it, of what it was before.

    `is_own`: whether that may be an attribute of `self` as well, as it is for a class that derives from the module's.
    """
    for node in statements(method):
        targets = [*map(whole, node.targets)] if isinstance(node, ast.Assign) else []
        if any(reads(target, name) and (is_own or not is_self_attribute(target)) for target in targets):
            if isinstance(node, ast.Assign) and any(reads(part, name) for part in walk(node.value)):
                return True
    return False


def reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def whole(target: ast.expr) -> ast.expr:
    """What a target is an item or the data of: `head.grid` of `head.grid[i]` and of `head.grid.data`."""
    while isinstance(target, ast.Subscript) or reads(target, "data"):
        assert isinstance(target, (ast.Subscript, ast.Attribute))
        target = target.value
    return target
