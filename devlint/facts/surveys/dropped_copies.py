"""Moved copies that nothing takes, though no statement drops a `x.to(device)` of its own.

    move_to_device(batch, device)                      # a function that gives back what it moved
    apply_to_collection(batch, torch.Tensor, to_card)  # what is mapped over tensors gives new ones
    for part in (inputs, labels):
        part = part.to(device)                         # the name of the loop, and nothing else

Modules, graphs and batches of their own classes move in place, so that the code must show tensors: by a test for them, by what
the interpreter knows, or by the names of data in a file that names none of those classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from devlint.facts.events import Move
from devlint.facts.frozen import replace
from devlint.facts.idioms.asked_for_tensors import is_told, says
from devlint.facts.idioms.dropped import INPUT, moves_itself
from devlint.facts.interpreter.flow import Flow
from devlint.facts.surveys.outline import Outline, dotted, inside, own_nodes, root_of
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import positional_names
from devlint.facts.text.signs import is_loader_name, is_model_name, moves
from devlint.facts.values import ONE_TENSOR, UNKNOWN, Value

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Functions of libraries that give back moved copies of tensors in any structure, with the packages that have them.
_MOVERS = {
    "move_data_to_device": ("pytorch_lightning", "lightning"),
    "send_to_device": ("accelerate",),
    "convert_tensor": ("ignite",),
    "move_to_device": ("allennlp",),
}
#: Names of what maps a function over a structure, and of that which does nothing else.
_MAPS = re.compile(r"apply|map")
_MAPS_COPIES = frozenset({"tree_map", "map_structure", "apply_to_collection", "map_aggregate"})
#: Names of data that are tensors, or dicts and lists of them.
_DATA = re.compile(
    r"(?:^|_)(?:batch|data|inputs?|samples?|targets?|labels?|features?|tensors?|examples?|xs?|obs)(?:_\w+)?$"
)
#: Signs of batches and graphs that move in place.
_IN_PLACE = re.compile(
    r"[Tt]okeni[sz]|transformers|BatchEncoding|BatchFeature|processor|torch_geometric|\bdgl\b|DataBatch|Instances|\b[Gg]raph"
)
#: What a function may be given that does nothing to it.
_ASKS = frozenset(
    {
        "isinstance",
        "len",
        "type",
        "hasattr",
        "getattr",
        "list",
        "tuple",
        "dict",
        "enumerate",
        "zip",
        "is_tensor",
        "callable",
    }
)
_CHANGES = frozenset({"update", "append", "extend", "insert", "pop", "setdefault", "clear", "remove", "copy_", "set_"})


def may_drop(tree: ast.Module, flow: Flow, text: str) -> bool:
    """Whether a file moves or pins anything, or imports what does."""
    return any(word in text for word in (".to(", ".cuda(", ".pin_memory()", *_MOVERS))


def dropped_copies(o: Outline) -> Iterator[Move]:
    """The moves whose copies are lost."""
    for call in o.dropped_calls:
        data = moved_by_call(o, call) if call.args else pinned(o, call)
        if data is not None and not is_tried(o, call):
            yield event(o, call, data)
    for event_ in [e for e in o.flow.events.values() if isinstance(e, Move) and e.target is not None]:
        loop = loop_bound(o, event_)
        if loop is not None and not is_tried(o, loop):
            text = o.flow.text(loop.iter)
            yield replace(event_, discarded=True, of_class=True, only_step=True, rebound=text)


def event(o: Outline, node: ast.Call, data: ast.expr) -> Move:
    """A call that gives back a moved copy of what an expression names, and is a statement by itself."""
    return Move(
        *o.head(node), last_name(node.func), o.flow.operand(data, Value("tensors", UNKNOWN)),
        Value("device", UNKNOWN), None, True, True, Value("tensors", UNKNOWN), o.loop(node) is not None, of_class=True,
    )  # fmt: skip


def is_tried(o: Outline, node: ast.AST) -> bool:
    """Whether a `try` around a node may wait for an error of it."""
    return any(isinstance(above, ast.Try) and above.handlers for above in o.above(node))


def pinned(o: Outline, call: ast.Call) -> ast.expr | None:
    """What a call of `pin_memory` is for, where a test says that it is a tensor."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr != "pin_memory" or call.keywords:
        return None
    return function.value if is_told(o.flow, call, function.value, o.parent) else None


# -- calls ------------------------------------------------------------------------------------------------------------


def moved_by_call(o: Outline, call: ast.Call) -> ast.expr | None:
    """What a call gives a moved copy of, which its statement drops."""
    name, first = last_name(call.func), call.args[0]
    if name in _MOVERS and (o.qualname(call.func) or "").startswith(_MOVERS[name]):
        return first if reads_like_data(o, first) else None
    if _MAPS.search(name) is not None:
        return mapped(o, call, name)
    if not reads_like_data(o, first):
        return None
    if isinstance(call.func, ast.Name):
        function = o.module_function(name)
    elif (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
    ):
        class_ = o.nearest(call, ast.ClassDef)
        function = (
            next((f for f in class_.body if isinstance(f, _FUNCTIONS) and f.name == name), None) if class_ else None
        )
    else:
        function = None
    if function is None or function.decorator_list:
        return None
    names = [n for n in positional_names(function.args) if n not in ("self", "cls")]
    return first if names and gives_copies(function, names[0]) else None


def mapped(o: Outline, call: ast.Call, name: str) -> ast.expr | None:
    """What a call maps a function over that moves tensors: `tree_map(lambda t: t.to(device), batch)`."""
    movers = [a for a in call.args if is_mover(o, a)]
    of_tensors = [a for a in call.args if is_tensor_class(a)]
    others = [
        a for a in call.args if a not in movers and a not in of_tensors and not isinstance(a, ast.Tuple | ast.Starred)
    ]
    packed = [a for a in call.args if isinstance(a, ast.Tuple) and not any(map(is_tensor_class, a.elts))]
    given = [*packed, *others]
    of_model = isinstance(call.func, ast.Attribute) and is_model_name(last_name(call.func.value))
    if len(movers) != 1 or not given or of_model:
        return None
    if of_tensors or (name in _MAPS_COPIES and reads_like_data(o, given[0])):
        return given[0]
    return None


def is_tensor_class(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) == "Tensor"


def is_mover(o: Outline, node: ast.expr) -> bool:
    """Whether an expression is a function that gives its argument moved, and does nothing else."""
    if isinstance(node, ast.Lambda):
        names = positional_names(node.args)
        return bool(names) and is_move_of(node.body, names[:1])
    if not isinstance(node, ast.Name):
        return False
    found = [f for f in o.functions if f.name == node.id]
    if len(found) != 1 or found[0].decorator_list:
        return False
    function, names = found[0], positional_names(found[0].args)
    body = [s for s in function.body if not isinstance(s, ast.Expr) or not isinstance(s.value, ast.Constant)]
    only = body[0] if len(body) == 1 else None
    return bool(names) and isinstance(only, ast.Return) and only.value is not None and is_move_of(only.value, names[:1])


def is_move_of(node: ast.expr, names: list[str]) -> bool:
    """Whether an expression is a move of something that is read from one of some names, if only under a condition."""
    if isinstance(node, ast.IfExp):
        return any(is_move_of(arm, names) for arm in (node.body, node.orelse))
    root = root_of(node)
    return isinstance(node, ast.Call) and moves(node) and isinstance(root, ast.Name) and root.id in names


@lru_cache(64)
def gives_copies(function: _Function, name: str) -> bool:
    """Whether a function gives back moved copies of a parameter, or of what is in it, and leaves the parameter as it is."""
    items, nodes = {name}, list(own_nodes(function))
    for node in nodes:
        if isinstance(node, (ast.For, ast.comprehension)) and items & names_of(node.iter):
            items |= names_of(node.target)
    if any(changes(node, items, function.name) for node in nodes):
        return False
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if not any(is_move_of(call, list(items)) for call in calls) or not returned or None in returned:
        return False
    rebinds = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in nodes)
    if not rebinds and all(isinstance(value, ast.Name) and value.id == name for value in returned):
        return False
    # one thing as a whole may be a module, or a batch that moves in place
    several = len(items) > 1 or any(last_name(call.func) == function.name for call in calls)
    return several or any(tests_for_tensor(call) for call in calls)


def changes(node: ast.AST, items: set[str], own: str) -> bool:
    """Whether a node stores into one of some names or into `self`, moves something in place, or hands one to what may do so."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        root = root_of(node)
        return isinstance(root, ast.Name) and root.id in items | {"self"}
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and moves(node.value)
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await))
    called, root = last_name(node.func), root_of(node.func)
    if isinstance(root, ast.Name) and root.id in items and root is not node.func and called in _CHANGES:
        return True
    handed = any(isinstance(argument, ast.Name) and argument.id in items for argument in node.args)
    return handed and not (called in _ASKS | {own, "append"} or called[:1].isupper() or moves(node))


def tests_for_tensor(call: ast.Call) -> bool:
    """Whether a call asks whether something is a tensor."""
    return last_name(call.func) == "isinstance" and any(
        is_tensor_class(n) for n in walk(call) if isinstance(n, ast.expr)
    )


def names_of(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def reads_like_data(o: Outline, node: ast.expr) -> bool:
    """Whether an expression is called like data, in a file that has no batches or graphs which move in place."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or is_model_name(last_name(node)):
        return False
    if not is_data_name(last_name(node)):
        return False
    return not moves_itself(o.flow) and not shows_in_place(o.flow.source.text)


@lru_cache(4)
def shows_in_place(text: str) -> bool:
    """Whether a file names batches or graphs that move in place."""
    return _IN_PLACE.search(text) is not None


def is_data_name(name: str) -> bool:
    """Whether a name is one of data that are tensors, or dicts and lists of them; not one of a loader."""
    known = _DATA.search(name.lower()) is not None or INPUT.fullmatch(name) is not None
    return known and not is_loader_name(name)


# -- loops ------------------------------------------------------------------------------------------------------------


def loop_bound(o: Outline, move: Move) -> ast.For | None:
    """The loop whose name a move is bound to, where nothing reads that again, though it reads what the loop goes through."""
    receiver = move.receiver.node
    if not isinstance(receiver, ast.Name) or receiver.id not in o.loop_names:
        return None
    statement = o.parent.get(move.node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or target.id != receiver.id or move.discarded:
        return None
    loop = o.nearest(statement, ast.For)
    if loop is None or not any(isinstance(n, ast.Name) and n.id == target.id for n in walk(loop.target)):
        return None
    scope = o.scope(loop)
    if o.scope(statement) is not scope or is_read_again(o, scope, target.id, statement, loop):
        return None
    parts = containers(loop.iter)
    if not parts or not any(is_read_below(o, scope, part, loop) for part in parts):
        return None
    return loop if shows_tensor(o, move, statement, loop, parts) else None


def is_read_again(o: Outline, scope: ast.AST, name: str, statement: ast.stmt, loop: ast.For) -> bool:
    """Whether a name is read below a statement, but in other loops that bind it."""
    end = statement.end_lineno or statement.lineno, statement.end_col_offset or 0
    read, declared = reads_in(scope)
    if name in declared:
        return True
    below = (node for node in read.get(name, ()) if (node.lineno, node.col_offset) >= end)
    return any(all(each is loop for each in binding(o, node)) for node in below)


def binding(o: Outline, node: ast.Name) -> list[ast.AST]:
    """The loops and comprehensions around a name that bind it."""
    if node in o.binding:
        return o.binding[node]
    found = o.binding[node] = []
    for above in o.above(node):
        generators = [above] if isinstance(above, ast.For) else getattr(above, "generators", [])
        if any(node.id in names_of(g.target) and not holds(g.iter, node) for g in generators):
            found.append(above)
    return found


@lru_cache(8)
def reads_in(scope: ast.AST) -> tuple[dict[str, list[ast.Name]], set[str]]:
    """The names that a scope reads or deletes, by what they are, and those that it declares to be of another one."""
    read: dict[str, list[ast.Name]] = {}
    for node in walk(scope):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            read.setdefault(node.id, []).append(node)
    own = (node for node in own_nodes(scope) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return read, {name for node in own for name in node.names}


def containers(iterated: ast.expr) -> list[str]:
    """The paths of what a loop goes through: `batch.items()`, `enumerate(parts)`, `(inputs, labels)`."""
    if isinstance(iterated, (ast.Tuple, ast.List)):
        found = [dotted(part) for part in iterated.elts]
        return [path for path in found if path is not None] if all(found) else []
    if isinstance(iterated, ast.Call):
        name = last_name(iterated.func)
        if name in ("items", "values") and isinstance(iterated.func, ast.Attribute) and not iterated.args:
            return containers(iterated.func.value)
        if name in ("enumerate", "list") and len(iterated.args) == 1 and isinstance(iterated.func, ast.Name):
            return containers(iterated.args[0])
        return []
    path = dotted(iterated)
    return [path] if path is not None and not is_loader_name(path.rpartition(".")[2]) else []


def is_read_below(o: Outline, scope: ast.AST, path: str, loop: ast.For) -> bool:
    """Whether a path is read below a loop; an attribute may be read by others."""
    end = loop.end_lineno or loop.lineno
    if "." in path:
        return True
    outer = o.nearest(loop, ast.For)
    if outer is not None and path in names_of(outer.target):
        return any(is_read_below(o, scope, part, outer) for part in containers(outer.iter))
    return any(isinstance(n.ctx, ast.Load) and n.lineno > end for n in reads_in(scope)[0].get(path, ()))


def shows_tensor(o: Outline, move: Move, statement: ast.stmt, loop: ast.For, parts: list[str]) -> bool:
    """Whether what is moved is a tensor: as the interpreter knows, by a test for it, or by the names of data."""
    assert isinstance(move.receiver.node, ast.Name)
    name, value = move.receiver.node.id, move.receiver.value
    if value.kind in ONE_TENSOR:
        return True
    for above in o.above(statement):
        if above is loop:
            break
        if isinstance(above, ast.If) and holds_any(above.body, statement) and says(o.flow, above.test, name):
            return True
    if (
        isinstance(move.node, ast.Call)
        and move.method == "cuda"
        and any(k.arg == "non_blocking" for k in move.node.keywords)
    ):
        return True
    if is_model_name(name) or any(is_model_name(path.rpartition(".")[2]) for path in parts):
        return False
    if value.kind == "module" or any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name for n in inside(loop.body)
    ):
        return False
    return (
        all(is_data_name(p.rpartition(".")[2]) for p in parts)
        and not moves_itself(o.flow)
        and (not shows_in_place(o.flow.source.text) or len(parts) > 1 or isinstance(loop.iter, ast.Call))
    )


def holds_any(body: list[ast.stmt], node: ast.AST) -> bool:
    return any(holds(statement, node) for statement in body)
