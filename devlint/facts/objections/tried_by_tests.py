"""What a test does with its project's own classes and functions: it is run where the project is tested.

    module = Offloaded(nn.Embedding(8, 8))     # its hooks bring the input to the CPU and back
    out = module(tokens.cuda())                # and the test passes

Where a test computes with torch alone the code says all there is to say. Of 25 findings in tests that were read 23 were false.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, last_name

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet

#: What gives the module that it is given, recorded, compiled or copied.
_KEEPS = frozenset({"trace", "script", "compile", "deepcopy"})


def is_tried(sites: CallSites, event: Meet) -> bool:
    """Whether an operation in a test has an operand that code of the project, or of a library beside torch, made."""
    function = sites.body(event.function)
    return function is not None and any(is_made(sites, function, o.node, 0) for o in (event.off, event.other))


def is_made(sites: CallSites, function: ast.AST, node: ast.AST, depth: int) -> bool:
    """Whether an expression calls something that is neither torch's nor a method of a value, or is bound to what does."""
    *parts, root = chain(node) if isinstance(node, ast.expr) else (node,)
    if not isinstance(root, ast.Name):
        return False
    made = next((part for part in reversed(parts) if isinstance(part, ast.Call)), None)
    if made is not None and made.args and last_name(made.func) in _KEEPS and root.id in sites.imports:
        return is_made(sites, function, made.args[0], depth + 1)  # `torch.jit.trace(net, x)`
    if parts and isinstance(parts[-1], ast.Call):
        return is_of_others(sites, root.id)  # `Net(x)`
    target = sites.imports.get(root.id)
    if target is not None:
        return any(isinstance(part, ast.Call) for part in parts) and is_of_others(sites, root.id)  # `models.Net(x)`
    if depth > 2:
        return False
    values = [
        n.value
        for n in walk(function)
        if isinstance(n, ast.Assign)
        and any(isinstance(part, ast.Name) and part.id == root.id for target in n.targets for part in walk(target))
    ]
    return any(value is not node and is_made(sites, function, value, depth + 1) for value in values)


def is_of_others(sites: CallSites, name: str) -> bool:
    """Whether a name is imported from somewhere else than torch."""
    target = sites.imports.get(name)
    return target is not None and target.partition(".")[0] != "torch"
