"""Facts about files that `torch.load` reads: which of them hold no tensors, so that no device is stored in them, and
which hold a module that runs where it was loaded to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import Load
from devlint.facts.frozen import replace
from devlint.facts.surveys.outline import Outline, dotted, method, own_nodes
from devlint.facts.text.method_names import PLACES

#: What reads arrays and numbers of the host, and no tensor of another device.
_FROM_HOST = frozenset({"torch.from_numpy"})
_HOST_CALLS = frozenset({"int", "float", "bool", "str", "len", "round", "repr", "range", "sorted"})
_HOST_METHODS = frozenset(
    {
        "item",
        "tolist",
        "numpy",
        "isoformat",
        "strftime",
        "lower",
        "upper",
        "format",
        "strip",
        "split",
        "join",
        "replace",
    }
)
_LOADS = frozenset({"torch.load", "torch.jit.load"})
_DEPTH = 4
_MANY = 50  # loads of one file whose uses are looked at one by one
_FETCHES = re.compile(r"(?i)download|hub|url|http|pretrained|asset")
#: What only a module has, and what takes it elsewhere.
_OF_MODULES = frozenset(
    {"eval", "train", "parameters", "named_parameters", "modules", "children", "requires_grad_", "zero_grad", "module"}
)
_MOVES = PLACES | {"state_dict"}
#: What is called where there are tensors.
_OF_TENSORS = _MOVES | {"detach", "parameters"}


def loads_by_content(o: Outline) -> Iterator[Load]:
    """The loads whose file holds no tensors of an accelerator, or only such as this machine wrote: the same class or file
    writes numbers, or what it moved to the CPU, or arrays are read from it, or the same function wrote it.
    And those whose file holds a module, which is used where it is."""
    events = {e.node: e for e in o.flow.events.values() if isinstance(e, Load) and e.qualname in _LOADS}
    if not events:
        return
    saves = [c for c in o.calls if o.qualname(c.func) == "torch.save" and c.args]
    scripted: dict[ast.AST, set[str]] = {}
    for call in o.calls:
        event = events.get(call)
        if event is not None and event.qualname == "torch.jit.load":
            if was_just_scripted(o, call, scripted):
                yield replace(event, tensors=False)
            elif len(events) < _MANY and is_used_as_module(o, call):
                yield replace(event, module=True)
        elif event is not None and (
            feeds_arrays(o, call)
            or writes_host_data(o, call, saves)
            or keeps_samples(o, call, saves)
            or was_just_written(o, call, saves)
        ):
            yield replace(event, tensors=False)
        elif event is not None and is_used_as_module(o, call):
            yield replace(event, module=True)


def feeds_arrays(o: Outline, load: ast.Call) -> bool:
    """Whether what is loaded, or a part of it, is given to `torch.from_numpy`."""
    for above in o.above(load):
        if isinstance(above, ast.stmt):
            break
        if isinstance(above, ast.Call) and o.qualname(above.func) in _FROM_HOST:
            return True
    statement = o.statement(load)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    name = dotted(statement.targets[0])
    if name is None or statement.value is not load:
        return False
    for node in own_nodes(o.scope(load)):
        if isinstance(node, ast.Call) and node.args and o.qualname(node.func) in _FROM_HOST:
            read = node.args[0]
            while isinstance(read, ast.Subscript):
                read = read.value
            if dotted(read) == name:
                return True
    return False


def is_used_as_module(o: Outline, load: ast.Call) -> bool:
    """Whether what is loaded is asked for what only a module has, and is moved nowhere afterwards."""
    asked: set[str] = set()
    node: ast.AST = load
    for above in o.above(load):  # torch.load(path).eval()
        if isinstance(above, ast.Attribute):
            asked.add(above.attr)
        elif not isinstance(above, ast.Call) or above.func is not node:
            break
        node = above
    statement = o.statement(load)
    name = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if name is not None and isinstance(statement, ast.Assign) and statement.value is node:
        class_ = o.nearest(load, ast.ClassDef) if name.startswith("self.") else None
        within = class_ if class_ is not None else o.scope(load)
        for other in ast.walk(within) if class_ is not None else own_nodes(within):
            if isinstance(other, ast.Attribute) and dotted(other.value) == name:
                asked.add(other.attr)
    return bool(asked & _OF_MODULES) and not asked & _MOVES


def writes_host_data(o: Outline, load: ast.Call, saves: list[ast.Call]) -> bool:
    """Whether the class that loads, or else its file, saves as well, and never anything but host data."""
    class_ = o.nearest(load, ast.ClassDef)
    own = [s for s in saves if class_ is not None and o.nearest(s, ast.ClassDef) is class_]
    return bool(own or saves) and all(is_host(o, save.args[0], 0) for save in own or saves)


def keeps_samples(o: Outline, load: ast.Call, saves: list[ast.Call]) -> bool:
    """Whether a method of a data set reads the very file that it writes otherwise: its samples are on the host."""
    class_ = o.nearest(load, ast.ClassDef)
    known = o.flow.classes.get(class_.name) if class_ is not None else None
    if known is None or known.family not in ("Dataset", "Sampler") or not load.args:
        return False
    path = ast.unparse(load.args[0])
    return any(
        o.function(save) is o.function(load) and len(save.args) > 1 and ast.unparse(save.args[1]) == path
        for save in saves
    )


def was_just_written(o: Outline, load: ast.Call, saves: list[ast.Call]) -> bool:
    """Whether the program reads what it wrote itself, so that the device is there: in the same function, in one that
    gives the path, or in a test, but for what is downloaded."""
    if not load.args:
        return False
    path = ast.unparse(load.args[0])
    bindings = o.assignments(path, load) if isinstance(load.args[0], ast.Name) else []
    bound = [value for value in bindings if isinstance(value, ast.expr)]
    if o.test and any(function.name.startswith("test") for function in o.functions):
        return not any(_FETCHES.search(o.flow.text(each)) for each in (load.args[0], *bound))
    if any(o.function(save) is made for value in bound for made in called(o, value) for save in saves):
        return True
    return any(
        o.function(save) is o.function(load)
        and save.lineno < load.lineno
        and len(save.args) > 1
        and ast.unparse(save.args[1]) == path
        for save in saves
    )


def was_just_scripted(o: Outline, load: ast.Call, scripted: dict[ast.AST, set[str]]) -> bool:
    """Whether the program reads a module that it saved itself: in the same scope, or in a test.

    `scripted`: the texts of what each scope gives to calls of `save`, filled as it is asked.
    """
    if o.test or not load.args:
        return o.test
    scope = o.scope(load)
    if scope not in scripted:
        saves = (n for n in own_nodes(scope) if isinstance(n, ast.Call) and method(n) == "save")
        scripted[scope] = {ast.unparse(argument) for save in saves for argument in save.args}
    return ast.unparse(load.args[0]) in scripted[scope]


def called(o: Outline, node: ast.expr) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of the file that a call may run, by the last name of what is called."""
    if not isinstance(node, ast.Call):
        return []
    name = method(node) or getattr(node.func, "id", None)
    return [function for function in o.functions if function.name == name]


def is_on_cpu(node: ast.expr) -> bool:
    """Whether an expression was moved to the CPU as a whole: `model.cpu().state_dict()`, `x.to("cpu")`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        to_cpu = node.func.attr == "to" and any(isinstance(a, ast.Constant) and a.value == "cpu" for a in node.args)
        if node.func.attr == "cpu" or to_cpu:
            return True
        node = node.func.value
    return False


def is_host(o: Outline, node: ast.expr | None, depth: int) -> bool:
    """Whether an expression surely holds no tensor of an accelerator: numbers, text, arrays, what was moved to the CPU,
    and containers of those."""
    if node is None or depth > _DEPTH:
        return False
    if is_on_cpu(node):
        return True
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare)):
        return True
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return all(is_host(o, e, depth) for e in node.elts)
    if isinstance(node, ast.Dict):
        return all(is_host(o, v, depth) for v in node.values)
    if isinstance(node, ast.BinOp):
        return is_host(o, node.left, depth) and is_host(o, node.right, depth)
    if isinstance(node, ast.UnaryOp):
        return is_host(o, node.operand, depth)
    if isinstance(node, ast.DictComp):
        return is_count(o, node.value, node.generators) or is_host(o, node.value, depth)
    if isinstance(node, ast.Subscript):  # what the same class read back
        held = dotted(node.value)
        loaded = o.assignments(held, node) if held is not None else []
        return bool(loaded) and all(isinstance(v, ast.Call) and o.qualname(v.func) == "torch.load" for v in loaded)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            if node.func.id == "dict":
                return not node.args and all(k.arg is not None and is_host(o, k.value, depth) for k in node.keywords)
            return node.func.id in _HOST_CALLS
        return method(node) in _HOST_METHODS or (o.qualname(node.func) or "").startswith(("numpy.", "time.", "math."))
    path = dotted(node)
    if path is None:
        return False
    if path.startswith("self.") and path.count(".") == 1 and knows_no_tensors(o, node):
        return True
    known = o.assignments(path, node)
    added = [c.args[0] for c in o.calls if method(c) == "append" and c.args and dotted(c.func.value) == path]  # type: ignore[attr-defined]
    return bool(known) and all(is_host(o, value, depth + 1) for value in (*known, *added))


def is_count(o: Outline, node: ast.expr, generators: list[ast.comprehension]) -> bool:
    """Whether a name is the number of an element: `{x: i for i, x in enumerate(xs)}`."""
    return any(
        isinstance(g.iter, ast.Call)
        and isinstance(g.iter.func, ast.Name)
        and g.iter.func.id == "enumerate"
        and isinstance(g.target, ast.Tuple)
        and isinstance(node, ast.Name)
        and ast.unparse(g.target.elts[0]) == node.id
        for g in generators
    )


def knows_no_tensors(o: Outline, node: ast.expr) -> bool:
    """Whether the class around a node is no module and uses torch for nothing but saving and loading."""
    class_ = o.nearest(node, ast.ClassDef)
    known = o.flow.classes.get(class_.name) if class_ is not None else None
    if class_ is None or known is None or known.family is not None:
        return False
    for call in ast.walk(class_):
        if isinstance(call, ast.Call) and method(call) in _OF_TENSORS:
            return False
        if isinstance(call, ast.Attribute) and (o.qualname(call) or "").startswith("torch."):
            if o.qualname(call) not in ("torch.save", "torch.load"):
                return False
        if isinstance(call, ast.arg) and call.annotation is not None and "Tensor" in ast.unparse(call.annotation):
            return False
    return True
