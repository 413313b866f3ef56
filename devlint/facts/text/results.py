"""What becomes of what a function gives: whether all that it returns, or all that its callers do with it, is of the host."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from devlint.facts.text.method_names import OFF_HOST, OFF_HOST_TENSOR, TO_HOST
from devlint.facts.text.nodes import children, walk
from devlint.facts.text.parameters import makes_tensor
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.returned import own_nodes
from devlint.facts.text.signs import HOST_LIBRARIES, moved_after, moves

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.text.defined import Function
    from devlint.facts.text.scan import Site

#: Methods of figures, axes and writers, which show or keep what they are given.
_SHOWS = frozenset(
    {
        "imshow", "matshow", "set_data", "plot", "scatter", "hist", "bar", "pcolormesh", "contourf", "add_image", "add_images",
        "add_histogram", "add_figure", "save_image", "imsave", "imwrite", "savetxt",
    }
)  # fmt: skip
#: Names of a project's own functions that do so: `plot_weights`, `draw_boxes`.
_PLOTS = re.compile(r"_?(plot|show|draw|visuali[sz]e)(_|\Z)")

#: Methods that may give a tensor elsewhere.
_MOVES = OFF_HOST_TENSOR | {"type"}
#: What makes a number of a tensor, wherever it is.
_NUMBERS = frozenset({"int", "float", "bool"})


def returns_host_data(function: ast.AST, names: Mapping[str, str]) -> bool:
    """Whether a function returns in several places, and in each of them a tensor that is made on the CPU there.

    `names`: what the names of its file are imported as.
    """
    statements = [node for node in own_nodes(function) if isinstance(node, ast.Return)]
    return len(statements) > 1 and all(is_made_on_host(statement.value, names) for statement in statements)


def is_made_on_host(node: ast.expr | None, names: Mapping[str, str]) -> bool:
    while isinstance(node, (ast.BinOp, ast.UnaryOp)):
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        else:
            node = node.right if isinstance(node.left, (ast.Constant, ast.UnaryOp)) else node.left
    if node is None:
        return False
    calls = [part for part in chain(node) if isinstance(part, ast.Call)]
    first = calls[-1].func if calls else None  # the call that the chain starts with
    of_type = (
        isinstance(first, ast.Attribute)
        and isinstance(first.value, ast.Name)
        and names.get(first.value.id) == "torch"
        and (first.attr.endswith("Tensor") or first.attr == "from_numpy")
    )
    if not of_type and not makes_tensor(node, names, "argument"):
        return False
    return not any(
        getattr(call.func, "attr", "") in OFF_HOST_TENSOR or any(k.arg == "device" for k in call.keywords)
        for call in calls
    )


def shares_array(node: ast.expr) -> bool:
    """Whether an expression is `torch.from_numpy(x)`, or made of that by methods that do not move it.

    Whatever `torch` is bound to, a lazy import too: nothing else has such a function.
    """
    names = [last_name(part.func) for part in chain(node) if isinstance(part, ast.Call)]
    return bool(names) and names[-1] == "from_numpy" and not _MOVES.intersection(names)


def is_shown(sites: CallSites, function: Function, copied: bool = True) -> bool:
    """Whether every call of a function takes what it gives to the host, or to what shows it there, and there are some.

    `copied`: whether a copy to the host counts, `renorm(x).cpu()`, or only what takes host data.
    """
    found = False
    for looked, site in sites.calls(function):
        scope = site.caller.node if site.caller is not None else looked.loaded.tree
        if not takes_to_host(scope, site, looked.loaded.imports.names, copied):
            return False
        found = True
    return found


def is_moved(sites: CallSites, function: Function, index: int | None) -> bool:
    """Whether every call of a function moves what it gives, at once or by the name that it gets, and there are some.

    `index`: the element of a tuple that is meant; None for the whole.
    """
    found = False
    for looked, site in sites.calls(function):
        scope = site.caller.node if site.caller is not None else looked.loaded.tree
        if not moves_result(scope, site.call, index):
            return False
        found = True
    return found


def is_taken_apart(sites: CallSites, function: Function, index: int | None) -> bool:
    """Whether some call of a function treats an element of the tuple that it gives otherwise than the rest: it moves that, or
    reads it on the host. Also where the call does not name the elements one by one."""
    for looked, site in sites.calls(function):
        scope = site.caller.node if site.caller is not None else looked.loaded.tree
        if moves_result(scope, site.call, index):
            return True
        bound = [n.targets[0] for n in walk(scope) if isinstance(n, ast.Assign) and n.value is site.call]
        target = bound[0] if bound else None
        if index is None or not isinstance(target, ast.Tuple) or index >= len(target.elts):
            return True
        part = target.elts[index]
        name = part.id if isinstance(part, ast.Name) else ""
        for node in walk(scope):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
                if node.attr in TO_HOST or node.attr in OFF_HOST:
                    return True
    return False


def moves_result(scope: ast.AST, call: ast.Call, index: int | None) -> bool:
    """Whether `start(n).to(device)` is written, or `a, b = start(n)` and below it `a, b = a.to(device), b.to(device)`."""
    later: set[str] | None = None
    for node in walk(scope):
        if isinstance(node, ast.Call) and moves(node) and getattr(node.func, "value", None) is call:
            return True
        if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
            target = node.targets[0]
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            if index is not None and isinstance(target, ast.Tuple):
                parts = parts[index : index + 1] if not any(isinstance(p, ast.Starred) for p in parts) else []
            names = [part.id for part in parts if isinstance(part, ast.Name)]
            later = moved_after(scope, call) if later is None else later
            return bool(parts) and len(names) == len(parts) and later.issuperset(names)
    return False


def index_in_result(function: ast.AST, is_place: Callable[[ast.expr], bool]) -> int | None:
    """Which element of the tuple that a function returns has a place; None where it is the whole, or not one alone."""
    tuples = [n.value for n in own_nodes(function) if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple)]
    found = {index for each in tuples for index, element in enumerate(each.elts) if is_place(element)}
    return found.pop() if len(found) == 1 else None


def takes_to_host(scope: ast.AST, site: Site, names: Mapping[str, str], copied: bool = True) -> bool:
    """Whether what a call gives is read by the host at once, or has one name of which that is true.

    Such a name may be changed in place, too, and asked for its sizes and extremes.
    """
    around = parents(scope)
    if is_read(site.call, around, names, copied):
        return True
    node: ast.AST = site.call
    while isinstance(around.get(node), (ast.Attribute, ast.Call)) and isinstance(node, ast.expr):
        node = around[node]
    bound = around.get(node)
    if not isinstance(bound, ast.Assign) or len(bound.targets) != 1 or not isinstance(bound.targets[0], ast.Name):
        return False
    name = bound.targets[0].id
    after = bound.end_lineno or 0
    uses = [n for n in walk(scope) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    uses = [use for use in uses if use.lineno > after]
    read = [is_read(use, around, names, copied) for use in uses]
    return any(read) and all(
        is_one or isinstance(around.get(use), ast.Attribute) for use, is_one in zip(uses, read, strict=True)
    )


def is_read(node: ast.AST, around: Mapping[ast.AST, ast.AST], names: Mapping[str, str], copied: bool = True) -> bool:
    """Whether an expression is copied to the host, or given to what reads it there. `copied` as for `is_shown`."""
    while True:
        outer = around.get(node)
        if isinstance(outer, ast.Attribute):
            if outer.attr in TO_HOST and isinstance(around.get(outer), ast.Call):
                return copied
            node = outer
        elif (isinstance(outer, ast.Call) and outer.func is node) or (
            isinstance(outer, ast.Subscript) and outer.value is node
        ):
            node = outer
        else:
            break
    if isinstance(outer, ast.keyword):
        outer = around.get(outer)
    if not isinstance(outer, ast.Call):
        return False
    *_, start = chain(outer.func)
    package = names.get(start.id, "").split(".", 1)[0] if isinstance(start, ast.Name) else ""
    name = getattr(outer.func, "attr", getattr(outer.func, "id", ""))
    if isinstance(outer.func, ast.Name) and name in _NUMBERS:
        return copied
    return package in HOST_LIBRARIES or name in _SHOWS or _PLOTS.match(name) is not None


def parents(scope: ast.AST) -> dict[ast.AST, ast.AST]:
    return dict(pairs(scope))


def pairs(scope: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in walk(scope):
        for child in children(node):
            yield child, node
