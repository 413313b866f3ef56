"""What the hooks of a plain object keep of the tensors that they see: it is where the model computes, in every method.

    def __init__(self, model, layer):
        layer.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.activation = output.detach().clone()

    def weights(self, scores):
        return self.activation * scores       # another method reads it

Known where hooks alone bind the attribute, but for None, to a tensor of theirs as it is, or a copy of it, and the method
that registers them brings nothing to the CPU, the model for the most part.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.idioms.filled_by_hooks import is_removed_before_move
from devlint.facts.idioms.placed import goes_back, stored_in
from devlint.facts.text.method_names import SAME_PLACE
from devlint.facts.text.nodes import statements
from devlint.facts.text.references import chain, is_self_attribute, last_name
from devlint.facts.text.signatures import positional_names
from devlint.facts.values import HOME, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts

_REGISTER = (
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
)  # fmt: skip
#: What leaves a tensor where it is.
_SAME = SAME_PLACE | {"data"}


def kept_by_hooks(machine: Machine, class_: ClassFacts, outside: set[str]) -> Iterator[tuple[str, Value]]:
    """The attributes of a plain class that its hooks bind to tensors which they see, and nothing else does.

    `outside`: attributes that other code of the file binds.
    """
    hooks = hooks_of(machine, class_)
    seen: dict[str, list[ast.expr]] = {}
    for hook in hooks:
        given = set(positional_names(hook.args)[2:])
        for node in statements(hook):
            if isinstance(node, ast.Assign) and is_part(node.value, given):
                for target in node.targets:
                    if is_self_attribute(target):
                        seen.setdefault(last_name(target), []).append(node.value)
    for name, values in seen.items():
        known = class_.attributes.get(name)
        stored = list(stored_in(class_, name))
        if name not in outside and len(stored) == len(values) and (known is None or known.kind in ("none", "unknown")):
            because = (Origin(machine.span(values[0]), "kept by a hook, on the device of the model"),)
            yield name, Value("tensor", HOME, None, because=because)


def hooks_of(machine: Machine, class_: ClassFacts) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The methods of a class that one of its methods, which brings nothing to the CPU, registers as hooks of a module."""
    names: set[str] = set()
    for site in (site for name in _REGISTER for site in machine.scan.calls.get(name, ())):
        if not site.call.args or site.caller is None or site.caller.owner is not class_.node:
            continue
        module = site.call.func.value if isinstance(site.call.func, ast.Attribute) else site.call.func
        if is_removed_before_move(machine, site, module):
            continue
        if is_self_attribute(site.call.args[0]) and not any(map(goes_back, site.caller.calls)):
            names.add(last_name(site.call.args[0]))
    return [method for name, method in class_.methods.items() if name in names]


def is_part(node: ast.expr, given: set[str]) -> bool:
    """Whether an expression is a tensor out of what a hook is given: `output.detach()`, `inputs[0].data.clone()`."""
    for part in chain(node):
        if isinstance(part, ast.Name):
            return part.id in given
        if isinstance(part, ast.Attribute) and part.attr not in _SAME:
            return False
        if isinstance(part, ast.Call) and (part.args or part.keywords or not isinstance(part.func, ast.Attribute)):
            return False
        if not isinstance(part, (ast.Attribute, ast.Call, ast.Subscript)):
            return False
    return False
