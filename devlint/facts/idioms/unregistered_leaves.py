"""Tensors that a module makes to be trained, and hands beside its inputs to functions of which nothing is known.

`self.alpha = torch.tensor(1.5, requires_grad=True)` with `entmax(hidden, self.alpha)` in `forward`. Such a tensor is no
parameter: it neither moves nor is trained nor saved with the module. Not where the module sets it again, as one does that
makes the steps itself, where an optimizer gets it, where it is moved, and where a checkpointed function needs something
with a gradient. A call whose result is dropped prints or logs what it is given.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.text.classes import ClassFacts, Unregistered
from devlint.facts.text.method_names import OFF_HOST_TENSOR
from devlint.facts.text.nodes import children, walk
from devlint.facts.text.references import chain, is_own_attribute, last_name
from devlint.facts.text.scan import Scan
from devlint.facts.text.signs import HOST_LIBRARIES
from devlint.facts.text.trained import is_optimized, is_trained, stores
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow

#: Names of what is there for its gradient alone.
_STANDS_IN = re.compile(r"dummy|fake|checkpoint", re.IGNORECASE)
#: What reads the size or the kind of something, or a number of it.
_SIZES = frozenset({"shape", "size", "ndim", "dim", "numel", "len", "dtype", "device", "item", "int", "float", "str"})
#: Names of what makes or runs optimizers.
_OPTIMIZER = re.compile(r"optim|adam|sgd|grad", re.IGNORECASE)


def uses(flow: Flow, class_: ClassFacts, name: str, entry: Unregistered) -> Iterator[tuple[str, Origin]]:
    """The calls in a module's methods that are given `self.name`, a tensor to be trained, beside what may be a tensor.

    With what is called.
    """
    if entry.what != "tensor" or not is_trained(entry.value_node) or entry.reassigned or _STANDS_IN.search(name):
        return
    init = class_.methods.get("__init__")
    if init is None or stores(class_, name) > sum(map(is_set(name), walk(init))):
        return
    if is_moved(class_, name) or is_optimized(class_, name) or name in given_to_optimizers(flow.scan):
        return
    for method_name, method in class_.methods.items():
        if method_name == "__init__":
            continue
        dropped = {id(n.value) for n in walk(method) if isinstance(n, ast.Expr)}
        for call in flow.scan.calls_in(method):
            others = [*call.args, *(k.value for k in call.keywords)]
            given = [a for a in others if isinstance(a, ast.Attribute) and is_own_attribute(a, name)]
            called = last_name(call.func)
            if len(given) != 1 or id(call) in dropped or not any(may_be_tensor(a) for a in others if a not in given):
                continue
            if is_of_python(call.func) or _STANDS_IN.search(called) or _OPTIMIZER.search(called):
                continue
            qualname = flow.qualify(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
            package = (qualname or "").partition(".")[0]
            if package not in HOST_LIBRARIES | {"torch", "math"}:
                text = flow.text(call.func)
                yield text, Origin(flow.span(given[0]), f"passed to `{text}` here")


def may_be_tensor(node: ast.expr) -> bool:
    """Whether an argument may be a tensor that moves: not a constant, a text, a size, or made of these alone."""
    if isinstance(node, (ast.Name, ast.Call, ast.Subscript)):
        parts = list(chain(node))
        return not any(last_name(part) in _SIZES for part in parts)
    if isinstance(node, ast.Attribute):
        return node.attr not in _SIZES
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Lambda, ast.Compare)):
        return False
    return any(may_be_tensor(child) for child in children(node) if isinstance(child, ast.expr))


def is_of_python(called: ast.expr) -> bool:
    """Whether what is called is a builtin function or a method of a text: `round`, `"{} {}".format`."""
    if isinstance(called, ast.Attribute):
        return called.attr == "format" or isinstance(called.value, (ast.Constant, ast.JoinedStr))
    return isinstance(called, ast.Name) and hasattr(builtins, called.id)


def is_moved(class_: ClassFacts, name: str) -> bool:
    """Whether a method moves `self.name` where it uses it: `self.alpha.to(x.device)`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in OFF_HOST_TENSOR
        and is_own_attribute(node.func.value, name)
        for method in class_.methods.values()
        for node in walk(method)
    )


def is_set(name: str) -> Callable[[ast.AST], bool]:
    """Whether a node is `self.name` where it is bound."""
    return lambda node: is_own_attribute(node, name) and isinstance(getattr(node, "ctx", None), ast.Store)


@lru_cache(8)
def given_to_optimizers(scan: Scan) -> frozenset[str]:
    """The attributes, by name, that a file gives to optimizers, or asks for the gradients of: `Adam([net.alpha])`."""
    return frozenset(
        node.attr
        for called, sites in scan.calls.items()
        if _OPTIMIZER.search(called) is not None
        for site in sites
        for given in (*site.call.args, *(k.value for k in site.call.keywords))
        for node in walk(given)
        if isinstance(node, ast.Attribute)
    )
