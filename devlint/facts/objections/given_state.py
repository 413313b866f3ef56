"""What constructors are given for what their modules keep: state that is placed, or registers itself, before it is handed over.

    class Head(nn.Module):
        def __init__(self, tables: list[nn.Embedding], features: Tensor):
            super().__init__()
            self.tables, self.features = tables, features

    Head(nn.ModuleList([...]), torch.from_numpy(rows).to(device))     # in all that the project makes of it

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.objections.flags import mentions
from devlint.facts.text.callers import Callers
from devlint.facts.text.defined import Function
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import chain, is_self_attribute, last_name
from devlint.facts.text.signatures import default_of, given_at, parameter_names
from devlint.facts.text.signs import moves

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Register
    from devlint.facts.text.scan import Site

#: Containers that register what is in them.
_REGISTERING = frozenset({"ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict"})


def is_given_right(sites: CallSites, event: Register) -> bool:
    """Whether everything in the project that makes a module gives it, for what it keeps of an argument as it is, what
    registers itself. Or was moved, in a program of its own: who installs a package may make and move its modules otherwise."""
    class_ = sites.class_of(event.function)
    home = sites.files.look(sites.path)
    init = class_.methods.get("__init__") if class_ is not None else None
    name = event.value.node.id if isinstance(event.value.node, ast.Name) else ""
    if class_ is None or home is None or init is None or name not in parameter_names(init):
        return False
    if not sites.files.reads_all(class_.name):
        return False
    position = Callers.position(Function(init, "__init__", class_), name)
    default = default_of(init.args, name)
    made = [
        is_right(site, given_at(site.call, name, position, default), event.what, sites.files.is_closed)
        for looked in mentions(sites, class_.name)
        for site in sites.made(looked, home, class_.name)
    ]
    return bool(made) and all(made)


def is_right(site: Site, node: ast.expr | None, what: str, may_be_moved: bool) -> bool:
    """Whether an argument registers itself, or is moved where its name is bound, where that counts."""
    if node is None:
        return False
    values = [node]
    scope = site.caller.node if site.caller is not None else None
    if is_self_attribute(node) and site.caller is not None and site.caller.owner is not None:
        scope = site.caller.owner
    if isinstance(node, (ast.Name, ast.Attribute)) and scope is not None:
        text = ast.unparse(node)
        assigns = (each for each in statements(scope) if isinstance(each, ast.Assign))
        values = [each.value for each in assigns if text in map(ast.unparse, each.targets)]
    if what != "tensor":
        return bool(values) and all(map(registers, values))
    return bool(values) and all(is_parameter(each) or (may_be_moved and places(each)) for each in values)


def registers(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in _REGISTERING


def is_parameter(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) and last_name(part.func) == "Parameter" for part in chain(node))


def places(node: ast.expr) -> bool:
    """Whether an expression gives what was made or moved somewhere."""
    if any(isinstance(part, ast.Call) and moves(part) for part in chain(node)):
        return True
    return any(
        keyword.arg == "device" for call in walk(node) if isinstance(call, ast.Call) for keyword in call.keywords
    )
