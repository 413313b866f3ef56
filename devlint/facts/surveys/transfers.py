"""Facts about copies between host and device: repeated, unpinned, read too early, there and back, wrongly pinned."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from devlint.facts.events import Create, EarlyRead, LoopMove, Move, Pin, RoundTrip, UnpinnedCopy
from devlint.facts.surveys.outline import (
    Loop,
    Outline,
    argument,
    dotted,
    inside,
    is_open,
    method,
    names_in,
    own_nodes,
    stored,
    touches,
)
from devlint.facts.text.method_names import OUT_OF_TORCH, PLACES, SHAPES, TYPES
from devlint.facts.text.references import last_name
from devlint.facts.values import CPU, Value, is_surely_accelerator, may_be_accelerator
from devlint.model import Origin

_JOINS = frozenset(f"torch.{name}" for name in ("cat", "concat", "stack", "vstack", "hstack"))
#: These give the same memory, or may: a conversion to what a tensor is already.
_VIEWS = SHAPES | TYPES | {"detach", "type"}
#: Methods of a tensor that compute with its values at once.
_COMPUTES = frozenset(
    {
        "sum", "mean", "argmax", "argmin", "argsort", "sort", "max", "min", "std", "var", "prod", "any", "all", "cumsum",
        "clone", "abs", "exp", "log", "softmax", "sigmoid", "nonzero", "unique", "topk", "eq", "norm", "clamp", "round",
    }
)  # fmt: skip
_WAITS = frozenset({"synchronize", "wait", "wait_stream", "wait_event", "barrier", "query", "item", "cpu", "tolist"})
#: Methods of arrays and tensors that compute on the host what an accelerator could compute as well.
_ARRAY_METHODS = frozenset(
    {
        "astype", "reshape", "sum", "mean", "argmax", "argmin", "argsort", "copy", "flatten", "ravel", "transpose",
        "squeeze", "clip", "max", "min", "cumsum", "tolist", "numpy", "std", "var", "prod", "repeat", "float", "long",
        "int", "double", "half", "clone", "detach", "unsqueeze", "view", "contiguous", "round", "any", "all",
    }
)  # fmt: skip
#: Functions of numpy that torch has too.
_ARRAY_FUNCTIONS = frozenset(
    "numpy." + name
    for name in (
        "abs", "absolute", "add", "all", "any", "arccos", "arcsin", "arctan", "argmax", "argmin", "argsort", "array",
        "asarray", "ascontiguousarray", "atleast_1d", "ceil", "clip", "concatenate", "cos", "cumsum", "diff", "divide",
        "dot", "exp", "expand_dims", "flip", "floor", "hstack", "log", "log2", "matmul", "maximum", "mean", "minimum",
        "multiply", "power", "prod", "repeat", "reshape", "round", "sign", "sin", "sort", "sqrt", "squeeze", "stack",
        "std", "subtract", "sum", "swapaxes", "tan", "tanh", "tile", "transpose", "var", "vstack", "where",
    )
)  # fmt: skip
_FROM_HOST = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor"})
_FILLED = frozenset(f"torch.{name}" for name in ("arange", "empty", "full", "linspace", "ones", "zeros"))
#: Factories whose direct move is create-then-move's.
_DIRECT = frozenset(
    {
        *("torch.from_numpy", "torch.frombuffer", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor"),
        *("torch.tensor", "torch.as_tensor", "torch.asarray"),  # their data is on the host, so the copy waits anyhow
    }
)
_ASKS = re.compile(r"cuda|cpu|is_available|accelerator|pin|gpu|device", re.IGNORECASE)


def moves(o: Outline) -> list[Move]:
    """The moves of the file, in the order of the text."""
    return sorted((e for e in o.flow.events.values() if isinstance(e, Move)), key=lambda e: e.span)


# -- moves that every pass of a loop repeats --------------------------------------------------------------------------


def loop_moves(o: Outline) -> Iterator[LoopMove]:
    if o.test:
        return  # what a test repeats it repeats on purpose
    every = moves(o)
    to_host = any(e.receiver.value.kind == "module" and e.target is not None and e.target.device == CPU for e in every)
    for event in every:
        call, path = event.node, dotted(event.receiver.node)
        if not isinstance(call, ast.Call) or path is None or event.target is None:
            continue
        loop = o.loop(call)
        if loop is None or o.conditional(call, loop) or runs_once(loop):
            continue
        value, target = event.receiver.value, event.target
        if value.kind == "module":
            if to_host or not may_be_accelerator(target.device):
                continue
        elif not (value.is_tensor and value.device == CPU and may_be_accelerator(target.device)):
            continue
        statement = o.statement(call)
        assert statement is not None
        whole = isinstance(statement, ast.Expr) and statement.value is call
        assigns = (
            isinstance(statement, ast.Assign)
            and statement.value is call
            and len(statement.targets) == 1
            and dotted(statement.targets[0]) == path
        )
        if assigns and value.kind != "module":
            continue  # from the second pass on there is nothing to copy
        rest = [s for s in loop.body if s is not statement]
        bound = stored(rest) | loop_targets(loop)
        if not (whole or assigns):
            bound |= stored([statement])
        if touches(path, bound) or any(touches(name, bound) for name in changing(call)) or changes(loop, path, call):
            continue
        function = o.scope(call)
        taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        free = path.rsplit(".", 1)[-1] + "_on_device"
        while free in taken:
            free += "_"
        yield LoopMove(
            *o.head(call, *event.receiver.value.because[:1], o.flow.origin(loop_head(loop), "the loop starts here")),
            "module" if value.kind == "module" else "tensor",
            event.receiver,
            target.device,
            o.flow.span(loop_head(loop)),
            whole or assigns,
            len(loop.body) == 1,
            free,
        )


def runs_once(loop: Loop) -> bool:
    """Whether the body ends with `break` or `return`, or runs over one element."""
    if loop.body and isinstance(loop.body[-1], (ast.Break, ast.Return)):
        return True
    if isinstance(loop, ast.While):
        return False
    if isinstance(loop.iter, (ast.Tuple, ast.List)):
        return len(loop.iter.elts) == 1
    return ast.unparse(loop.iter) == "range(1)"


def loop_targets(loop: Loop) -> set[str]:
    return set() if isinstance(loop, ast.While) else {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}


def loop_head(loop: Loop) -> ast.expr:
    return loop.test if isinstance(loop, ast.While) else loop.iter


def changing(call: ast.Call) -> set[str]:
    """What the target of a move depends on; "*" stands for a call, whose result may differ each time."""
    found: set[str] = set()
    for given in (*call.args, *(k.value for k in call.keywords)):
        found |= names_in(given)
        found |= {d for n in ast.walk(given) if (d := dotted(n)) is not None}
    return found


def changes(loop: Loop, path: str, move: ast.Call) -> bool:
    """Whether the loop may change what a path holds, or depends on a fresh target."""
    if any(
        isinstance(n, ast.Call) for given in (*move.args, *(k.value for k in move.keywords)) for n in ast.walk(given)
    ):
        return True
    for node in inside(loop.body):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and dotted(node.func.value) == path and node is not move:
                name = node.func.attr
                if name in PLACES or name == "pin_memory" or (name.endswith("_") and not name.endswith("__")):
                    return True
            for keyword in node.keywords:
                if keyword.arg == "out" and dotted(keyword.value) == path:
                    return True
        elif isinstance(node, (ast.Global, ast.Nonlocal)) and path in node.names:
            return True
    return False


# -- copies that cannot overlap ---------------------------------------------------------------------------------------


def unpinned(o: Outline) -> Iterator[UnpinnedCopy]:
    flow = o.flow
    if ".pin_memory =" in flow.source.text:
        return
    loaders = {flow.span(node): node for node, values in flow.watched.items() if "self" not in values}
    for event in moves(o):
        call, value = event.node, event.receiver.value
        if not isinstance(call, ast.Call) or event.target is None or not may_be_accelerator(event.target.device):
            continue
        flag = argument(call, "non_blocking", 1 if event.method == "cuda" else None)
        if not (isinstance(flag, ast.Constant) and flag.value is True):
            continue
        if not value.is_tensor or value.device != CPU or value.moved:
            continue
        if value.made:
            scope = o.scope(call)
            if "pin" in (flow.source.text if scope is o.tree else flow.text(scope)):
                continue
            if any(k.arg in ("pin_memory", None) for made in value.made for k in made.node.keywords):
                continue
            direct = any(made.span == event.receiver.span and made.handed is None for made in value.made)
            if direct and value.made[0].function not in _DIRECT:
                continue
            if any("new" in made.function or made.function.endswith("_like") for made in value.made):
                continue
            made_at = value.made[0].span
            yield UnpinnedCopy(
                *o.head(call, Origin(made_at, "made in pageable memory here")), "factory", made_at, event.receiver.text
            )
            continue
        loader = next((loaders[b.span] for b in value.because if b.span in loaders), None)
        if not isinstance(loader, ast.Call) or is_open(loader):
            continue
        pins = argument(loader, "pin_memory", 7)
        if pins is None or (isinstance(pins, ast.Constant) and pins.value is False):
            span = flow.span(loader)
            yield UnpinnedCopy(
                *o.head(call, Origin(span, "this loader does not pin its batches")), "loader", span, event.receiver.text
            )


def unpinned_sources(o: Outline) -> Iterator[UnpinnedCopy]:
    """`buffer.copy_(host, non_blocking=True)`: host memory that is made there, into a buffer that is put on a device."""
    for call in o.calls:
        flag = argument(call, "non_blocking", 1)
        if method(call) != "copy_" or not (isinstance(flag, ast.Constant) and flag.value is True):
            continue
        source, buffer = argument(call, "src", 0), call.func.value if isinstance(call.func, ast.Attribute) else None
        while isinstance(buffer, ast.Subscript):
            buffer = buffer.value
        made = _only_value(o, source, call)
        scope = o.scope(call)
        text = o.flow.source.text if scope is o.tree else o.flow.text(scope)
        if made is None or source is None or "pin" in text or o.qualname(made.func) not in _FROM_HOST | _FILLED:
            continue
        placed = _only_value(o, buffer, call)
        if any(k.arg in ("device", None) for k in made.keywords) or placed is None or not _is_placed(placed):
            continue
        span = o.flow.span(made)
        head = o.head(call, Origin(span, "made in pageable memory here"))
        yield UnpinnedCopy(*head, "factory", span, ast.unparse(source))


def _only_value(o: Outline, node: ast.expr | None, at: ast.Call) -> ast.Call | None:
    """The call that an expression is, or that is all its name is bound to."""
    path = dotted(node) if node is not None else None
    values = o.assignments(path, at) if path is not None else [node]
    return values[0] if len(values) == 1 and isinstance(values[0], ast.Call) else None


def _is_placed(call: ast.Call) -> bool:
    """Whether what a call makes is put on a device that is not the host by name."""
    where = argument(call, "device", 0 if method(call) == "to" else None)
    named = isinstance(where, ast.Constant) and where.value in ("cpu", None)
    return method(call) == "cuda" or (where is not None and not named)


# -- copies to the host that are read too early -----------------------------------------------------------------------


def early_reads(o: Outline) -> Iterator[EarlyRead]:
    for event in moves(o):
        call = event.node
        if not isinstance(call, ast.Call) or event.method != "to" or event.target is None:
            continue
        if event.target.device != CPU or event.receiver.value.device == CPU:
            continue
        flag = next((k for k in call.keywords if k.arg == "non_blocking"), None)
        if flag is None or not (isinstance(flag.value, ast.Constant) and flag.value.value is True):
            continue
        read = reader(o, call) or later_read(o, call) or spread_read(o, call)
        statement = o.statement(call)
        if read is None and statement is not None and method(o.parent.get(call, call)) == "append":
            read = collected_read(o, statement, call)
        if read is not None:
            node, name = read
            span = o.flow.span(node)
            yield EarlyRead(*o.head(call, Origin(span, f"{name} reads it here")), o.flow.span(flag), span, name)


def reader(o: Outline, node: ast.AST) -> tuple[ast.AST, str] | None:
    """What reads the values of an expression right where it stands."""
    parent = o.parent.get(node)
    if isinstance(parent, ast.Attribute):
        call = o.parent.get(parent)
        if isinstance(call, ast.Call) and call.func is parent:
            if parent.attr in OUT_OF_TORCH or parent.attr in _COMPUTES:
                return call, f"`.{parent.attr}()`"
            if parent.attr in _VIEWS:
                return reader(o, call)
        return None
    if isinstance(parent, ast.Call) and node in parent.args:
        if isinstance(parent.func, ast.Name) and parent.func.id in ("print", "float", "int", "bool"):
            return parent, f"`{parent.func.id}`"
        name = o.qualname(parent.func) or ""
        if name.startswith("numpy.") or name == "torch.save":
            return parent, f"`{name}`"
    if isinstance(parent, ast.FormattedValue):
        return parent, "a format"
    if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
        return reader(o, parent)
    if isinstance(parent, ast.BinOp):
        return parent, "an operator"
    if isinstance(parent, ast.Compare) and not any(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops):
        return parent, "a comparison"
    return None


def later_read(o: Outline, call: ast.Call) -> tuple[ast.AST, str] | None:
    """The first use of the name that a copy is bound to, if it reads the values and nothing has waited before."""
    statement = o.statement(call)
    if not (isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1):
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return None
    block = o.block(statement)
    for following in block[block.index(statement) + 1 :]:
        nodes = list(inside([following]))
        uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == target.id]
        waits = [n for n in nodes if method(n) in _WAITS and names_in(n) != {target.id}]
        if waits:
            return None
        if uses and isinstance(following, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            asked = names_in(following.test) if isinstance(following, ast.If) else set()
            first = uses[0] if target.id in asked else None
            return reader(o, first) if first is not None else None
        if uses:
            found = next((read for use in uses if (read := reader(o, use)) is not None), None)
            return found if found is not None else collected_read(o, following, target)
        if any(isinstance(n, ast.Call) for n in nodes) and isinstance(following, (ast.For, ast.While, ast.With)):
            return None  # something in there may wait
    return None


def spread_read(o: Outline, call: ast.Call) -> tuple[ast.AST, str] | None:
    """`copies = [x.to("cpu", non_blocking=True) for x in xs]`, of which the next statement reads each one."""
    made, statement = o.parent.get(call), o.statement(call)
    if not isinstance(made, (ast.ListComp, ast.DictComp)) or not isinstance(statement, (ast.Assign, ast.Return)):
        return None
    if statement.value is not made or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    name, block = dotted(statement.targets[0]), o.block(statement)
    following = block[block.index(statement) + 1 :][:1]
    nodes = list(inside(following)) if following and not hasattr(following[0], "body") else []
    for node in nodes:
        if not isinstance(node, (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)):
            continue
        over = node.generators[0].iter
        taken = over.func.value if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else over
        if dotted(taken) != name:
            continue
        bound = names_in(node.generators[0].target)
        uses = [n for n in nodes if isinstance(n, ast.Name) and n.id in bound and isinstance(n.ctx, ast.Load)]
        return next((read for use in uses if (read := reader(o, use)) is not None), None)
    return None


def collected_read(o: Outline, statement: ast.stmt, copy: ast.expr) -> tuple[ast.AST, str] | None:
    """`parts.append(copy)` in a loop, and `torch.cat(parts)` right after the loop with no wait on the way."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    loop = o.loop(statement)
    if loop is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    parts = dotted(call.func.value)
    if parts is None or call.func.attr != "append" or [ast.dump(a) for a in call.args] != [ast.dump(_read(copy))]:
        return None
    if any(method(n) in _WAITS for n in inside(loop.body)):
        return None
    siblings = o.block(loop)
    for following in siblings[siblings.index(loop) + 1 :]:
        nodes = list(inside([following]))
        if any(method(n) in _WAITS for n in nodes):
            return None
        for node in nodes:
            if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) == parts:
                joined = o.parent.get(node)
                qualname = o.qualname(joined.func) if isinstance(joined, ast.Call) else None
                return (joined, f"`{qualname}`") if joined is not None and qualname in _JOINS else None
    return None


def _read(node: ast.expr) -> ast.expr:
    """An expression as it is read: the target of an assignment is a name that is bound."""
    return ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node


# -- to the host and back ---------------------------------------------------------------------------------------------


def round_trips(o: Outline) -> Iterator[RoundTrip]:
    if o.test:
        return  # a test compares what came back with what left
    on_device = {id(e.node): e for e in o.flow.events.values() if isinstance(e, (Move, Create))}
    for scope in (o.tree, *o.functions):
        taint: dict[str, tuple[ast.expr, ...]] = {}
        body = scope.body
        for node in inside(list(body)):
            if isinstance(node, ast.Call) and node.lineno:
                event = on_device.get(id(node))
                steps: tuple[ast.expr, ...] | None = None
                if isinstance(event, Move) and event.target is not None and may_be_accelerator(event.target.device):
                    steps = host_of(o, event.receiver.node, taint)
                elif isinstance(event, Create) and event.device is not None and event.qualname in _FROM_HOST:
                    if node.args and may_be_accelerator(event.device.device):
                        steps = host_of(o, node.args[0], taint)
                if steps is not None and any(method(s) in ("numpy", "tolist") for s in steps):
                    left = next((s for s in steps if method(s) in ("cpu", "to")), None)
                    source = on_device.get(id(left))
                    if left is None or (isinstance(source, Move) and source.receiver.value.device == CPU):
                        continue
                    span = o.flow.span(left)
                    origin = Origin(span, "copied to the host here")
                    yield RoundTrip(
                        *o.head(node, origin), span, tuple(o.flow.origin(s, "used on the CPU here") for s in steps)
                    )
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found = host_of(o, node.value, taint)
                name = node.targets[0].id
                if found is not None:
                    taint[name] = found
                else:
                    taint.pop(name, None)
            elif isinstance(node, (ast.AugAssign, ast.For)) and isinstance(node.target, ast.Name):
                taint.pop(node.target.id, None)


def host_of(o: Outline, node: ast.expr, taint: dict[str, tuple[ast.expr, ...]]) -> tuple[ast.expr, ...] | None:
    """The calls that took the values of an expression to the host, if they are all it is made of."""
    if isinstance(node, ast.Name):
        return taint.get(node.id)
    if isinstance(node, (ast.Subscript, ast.UnaryOp)):
        return host_of(o, node.value if isinstance(node, ast.Subscript) else node.operand, taint)
    if isinstance(node, ast.BinOp):
        return host_of(o, node.left, taint) or host_of(o, node.right, taint)
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return host_of(o, node.value, taint)
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name == "cpu" and not node.args:
            return (node,)
        if name in _ARRAY_METHODS:
            inner = host_of(o, node.func.value, taint)
            if inner is not None:
                return (*inner, node) if name in ("numpy", "tolist") else inner
    qualname = o.qualname(node.func)
    if qualname in _FROM_HOST or qualname in _ARRAY_FUNCTIONS:
        for given in node.args:
            parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]
            for part in parts:
                inner = host_of(o, part, taint)
                if inner is not None:
                    return inner
    return None


# -- pinning ----------------------------------------------------------------------------------------------------------


def pins(o: Outline) -> Iterator[Pin]:
    flow = o.flow
    collates: dict[tuple[ast.AST | None, str], Moved | None] = {}
    for node, values in flow.watched.items():
        if not isinstance(node, ast.Call):
            continue
        if "self" in values:
            receiver = values["self"]
            if is_surely_accelerator(receiver.device) and isinstance(node.func, ast.Attribute):
                yield Pin(
                    *o.head(node, *receiver.because[:1]), "on-device", flow.operand(node.func.value, receiver), None
                )
            continue
        dataset = values.get("dataset", values.get("0"))
        flag = next((k for k in node.keywords if k.arg == "pin_memory"), None)
        if dataset is None or flag is None or not (isinstance(flag.value, ast.Constant) and flag.value.value is True):
            continue
        collate = argument(node, "collate_fn", 6)
        if collate is not None:
            key = (o.nearest(node, ast.ClassDef), last_name(collate))
            if key not in collates:
                collates[key] = moved_by(o, node, collate)
            moved = collates[key]
            if moved is not None:
                yield Pin(
                    *o.head(flag.value, moved.origin("the batch is moved here, before it is pinned")),
                    "collated",
                    flow.operand(collate, Value("unknown")),
                    flow.span(flag),
                )
            continue
        if is_open(node):
            continue
        place = yields(dataset)
        given = argument(node, "dataset", 0)
        if place is not None and given is not None:
            yield Pin(*o.head(node, *dataset.because[:1]), "loader", flow.operand(given, place), flow.span(flag))
    yield from unguarded_pins(o)


class Moved(NamedTuple):
    """A move, and the file in which it stands; None for the one under analysis."""

    call: ast.Call
    outline: Outline
    path: str | None = None

    def origin(self, text: str) -> Origin:
        return Origin(self.outline.flow.span(self.call), text, self.path)


def moved_by(o: Outline, loader: ast.Call, collate: ast.expr) -> Moved | None:
    """Where a `collate_fn` of the project moves what it puts together to a device, and asks for none."""
    name, class_ = last_name(collate), o.nearest(loader, ast.ClassDef)
    home = class_ if isinstance(collate, ast.Attribute) else None
    for function in o.functions:
        if function.name != name or (home is not None and o.parent.get(function) is not home):
            continue
        if isinstance(collate, ast.Name) and isinstance(o.parent.get(function), ast.ClassDef):
            continue
        call = moved_in(o, function)
        if call is not None:
            return Moved(call, o)
    return moved_abroad(o, collate)


def moved_abroad(o: Outline, function: ast.expr) -> Moved | None:
    """Where a function of another file moves what it is given to a device, and asks for none."""
    flow, qualname = o.flow, o.qualname(function)
    if qualname is None and isinstance(function, ast.Name) and o.module_function(function.id) is None:
        qualname = flow.by_star(function.id)
    found = flow.find(qualname) if qualname is not None else None
    if found is None or found.kind != "function" or found.loaded is None or found.flow is None:
        return None
    node, there = found.loaded.function(found.short), Outline(found.loaded.tree, found.flow)
    call = moved_in(there, node) if node is not None else None
    return Moved(call, there, found.path) if call is not None else None


def moved_in(o: Outline, function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.Call | None:
    """The first move of a function to a device that is not the CPU for sure, under no condition that asks for the device."""
    for call in inside(function.body):
        if not isinstance(call, ast.Call) or any(_ASKS.search(test) for test in o.tests(call)):
            continue
        target = call.args[0] if method(call) == "to" and call.args else None
        if method(call) == "cuda" or (target is not None and is_no_host(o, target, call)):
            return call
    return None


def is_no_host(o: Outline, target: ast.expr, place: ast.AST) -> bool:
    """Whether the target of a move reads like a device that is not the CPU for sure."""
    if last_name(target) not in ("device", "cuda"):
        return False
    known = [o.flow.text(value) for value in o.assignments(dotted(target) or "", place) if value is not None]
    return not known or any("cpu" not in text or "cuda" in text for text in known)


def yields(dataset: Value) -> Value | None:
    """A dataset whose items are surely on an accelerator."""
    if dataset.kind == "dataset" and is_surely_accelerator(dataset.device):
        return dataset
    parts = dataset.elements if dataset.kind == "list" and isinstance(dataset.elements, tuple) else ()
    if parts and all(e.is_tensor and is_surely_accelerator(e.device) for e in parts):
        return parts[0]
    return None


def unguarded_pins(o: Outline) -> Iterator[Pin]:
    """`x.pin_memory().to(device)` where the code itself says that `device` may be the CPU, and does not ask here."""
    for call in o.calls:
        if method(call) != "pin_memory" or call.args or call.keywords:
            continue
        attribute = o.parent.get(call)
        move = o.parent.get(attribute) if isinstance(attribute, ast.Attribute) and attribute.attr == "to" else None
        if not isinstance(move, ast.Call) or not move.args or not isinstance(call.func, ast.Attribute):
            continue
        device = dotted(move.args[0])
        if device is None or asks_for_device(o, call):
            continue
        because = may_be_cpu(o, device, call)
        if because is not None:
            value = Value("tensor", CPU)
            yield Pin(*o.head(call, because), "no-accelerator", o.flow.operand(call.func.value, value), None)


def asks_for_device(o: Outline, node: ast.AST) -> bool:
    """Whether a condition around a node, or in the same function, asks what the device is."""
    if any(_ASKS.search(test) for test in o.tests(node)):
        return True
    scope = o.scope(node)
    conditions = (n.test for n in own_nodes(scope) if isinstance(n, (ast.If, ast.IfExp, ast.Assert)))
    return scope is not o.tree and any(_ASKS.search(o.flow.text(test)) for test in conditions)


def may_be_cpu(o: Outline, device: str, at: ast.AST) -> Origin | None:
    """Where the file says that a device variable may be the CPU: by a choice, or by asking what it is."""
    for value in o.assignments(device, at):
        if isinstance(value, ast.expr) and "cpu" in o.flow.text(value) and "available" in o.flow.text(value):
            return o.flow.origin(value, "the device is chosen here, and may be the CPU")
    if any(o.assignments(device, at)) or not o.assignments(device, at):
        for node in ast.walk(o.tree):
            if isinstance(node, ast.Compare) and len(node.comparators) == 1:
                sides = (node.left, node.comparators[0])
                named = any(dotted(s) in (device, f"{device}.type") for s in sides)
                types = any(isinstance(s, ast.Constant) and s.value in ("cuda", "cpu") for s in sides)
                if named and types:
                    return o.flow.origin(node, "the code checks the device here")
    return None
