"""Facts about what a training loop does in every step: waiting for the device, emptying caches, keeping graphs alive.

A training loop is the innermost loop around a `.backward()`. What the loss is computed from are tensors: names that the
loop binds and that flow into the receiver of `.backward()`.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from devlint.facts.events import ColdTimer, LoopEmpty, LoopWait, Retained
from devlint.facts.surveys.outline import (
    Loop,
    Outline,
    dotted,
    inside,
    method,
    names_in,
    root_of,
    stored,
    touches,
    values_of,
)
from devlint.facts.surveys.transfers import loop_head
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.values import NOTHING

_EMPTIES = frozenset(f"torch.{m}.empty_cache" for m in ("cuda", "xpu", "mps", "npu", "mtia", "accelerator"))
_BLOCKING = TO_HOST | {"nonzero"}
_BUILTINS = frozenset(dir(builtins))
_HOST_ROOTS = frozenset({"time", "math", "random", "numpy", "os", "datetime", "copy", "functools", "itertools", "tqdm"})
_NUMBERS = frozenset({"item", "size", "numel", "dim", "tolist", "numpy"})


_RETRY = re.compile(r"RuntimeError|OutOfMemory")


class Step(NamedTuple):
    """A training loop: a `.backward()` in it, the names of its losses, and of the tensors that they are made of.

    `nodes`: what its body holds; `values`: what that binds, by path.
    """

    loop: Loop
    backward: ast.Call
    losses: frozenset[str]
    tensors: frozenset[str]
    nodes: list[ast.AST]
    values: dict[str, list[ast.expr | None]]


def steps(o: Outline) -> list[Step]:
    """The training loops of the file."""
    found: list[Step] = []
    bodies: dict[Loop, tuple[list[ast.AST], dict[str, list[ast.expr | None]], set[str]]] = {}
    for call in o.calls:
        if method(call) != "backward" or not isinstance(call.func, ast.Attribute):
            continue
        loop = o.loop(call)
        if loop is None:
            continue
        receiver = call.func.value
        if call.args and dotted(receiver) is not None and isinstance(call.args[0], ast.Name):
            receiver = call.args[0]  # `accelerator.backward(loss)`
        if loop not in bodies:
            nodes = list(inside(loop.body))
            bodies[loop] = nodes, values_of(nodes), stored(loop.body)
        nodes, values, bound = bodies[loop]
        losses = frozenset(names_in(receiver) & bound)
        found.append(Step(loop, call, losses, sources(o, values, losses, bound), nodes, values))
    return found


def sources(
    o: Outline, assigned: dict[str, list[ast.expr | None]], names: frozenset[str], bound: set[str]
) -> frozenset[str]:
    """The names from which some names of a loop are computed, as far as calls of models and losses compute them."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in found or name not in assigned:
            continue
        values = [v for v in assigned[name] if v is not None]
        if name not in names and not all(computed(o, value) for value in values):
            continue
        found.add(name)
        for value in values:
            pending += names_in(value) & bound
    return frozenset(found)


def computed(o: Outline, node: ast.expr) -> bool:
    """Whether an expression is the result of a call that may run on a device, and no number."""
    if isinstance(node, ast.BinOp):
        return computed(o, node.left) or computed(o, node.right)
    if not isinstance(node, ast.Call) or method(node) in _NUMBERS:
        return False
    if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS and node.func.id not in o.flow.imports.names:
        return False
    qualname = o.qualname(node.func) or ""
    return qualname.split(".", 1)[0] not in _HOST_ROOTS


# -- waiting in every step --------------------------------------------------------------------------------------------


def loop_waits(o: Outline) -> Iterator[LoopWait]:
    if o.test:
        return
    for step in steps(o):
        loop = step.loop
        numbers = {
            name
            for name in step.tensors
            for value in step.values.get(name, ())
            if value is not None and (method(value) in _NUMBERS or is_cast(value))
        }
        for node in step.nodes:
            operation = wait_of(node, step.tensors, numbers)
            if operation is None or o.loop(node) is not loop or o.conditional(node, loop):
                continue
            head = loop_head(loop)
            at = node.test if isinstance(node, (ast.If, ast.While)) else node
            yield LoopWait(*o.head(at, o.flow.origin(head, "in every step of this loop")), operation, o.flow.span(head))


def is_cast(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "int")


def wait_of(node: ast.AST, tensors: frozenset[str], numbers: set[str]) -> str | None:
    """How a node makes the host wait, None when it does not."""
    if isinstance(node, ast.Call):
        name = method(node)
        if name in _BLOCKING and isinstance(node.func, ast.Attribute) and not (node.args and name != "cpu"):
            inner = node.func.value
            root = root_of(inner)
            if isinstance(root, ast.Name) and root.id in tensors and not has_shape(inner) and not blocks(inner):
                return f".{name}()"
            return None
        if isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "print"):
            for given in node.args:
                parts = [given]
                if isinstance(given, ast.JoinedStr):
                    parts = [p.value for p in given.values if isinstance(p, ast.FormattedValue)]
                for part in parts:
                    if isinstance(part, ast.Name) and part.id in tensors and part.id not in numbers:
                        return node.func.id
        return None
    if isinstance(node, (ast.If, ast.While)):
        test: ast.expr = node.test
        while isinstance(test, ast.UnaryOp):
            test = test.operand
        while isinstance(test, ast.Call) and isinstance(function := test.func, ast.Attribute):
            if function.attr in ("isnan", "isinf", "isfinite") and len(test.args) == 1:
                test = test.args[0]
            elif function.attr in ("any", "all"):
                test = function.value
            else:
                break
        if isinstance(test, ast.Compare) and not any(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops):
            test = test.left
        if isinstance(test, ast.Name) and test.id in tensors and test.id not in numbers:
            return "if"
    return None


def has_shape(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("shape", "device", "dtype") for n in ast.walk(node))


def blocks(node: ast.expr) -> bool:
    """Whether a chain waited already: `x.cpu()` of `x.cpu().numpy()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _BLOCKING:
            return True
        node = node.func.value
    return False


def loop_empties(o: Outline) -> Iterator[LoopEmpty]:
    for call in o.calls:
        qualname = o.qualname(call.func)
        if qualname not in _EMPTIES:
            continue
        loop = o.loop(call)
        if loop is None or o.conditional(call, loop):
            continue
        if any(isinstance(n, (ast.For, ast.AsyncFor, ast.While)) for n in inside(loop.body)):
            continue  # an outer loop: once per epoch
        if any(isinstance(n, ast.ExceptHandler) and _RETRY.search(ast.unparse(n)) for n in inside(loop.body)):
            continue  # tries again with less after running out of memory
        head = loop_head(loop)
        yield LoopEmpty(
            *o.head(call, o.flow.origin(head, "in every iteration of this loop")), qualname, o.flow.span(head)
        )


# -- graphs that are kept ---------------------------------------------------------------------------------------------


def retained(o: Outline) -> Iterator[Retained]:
    seen: set[ast.AST] = set()
    for step in steps(o):
        if not step.losses or "retain_graph" in o.flow.text(step.loop) or "create_graph" in o.flow.text(step.loop):
            continue
        for node in step.nodes:
            kept = keeps(node, step.losses)
            if kept is None or node in seen or o.loop(node) is not step.loop:
                continue
            keeper, operand, how = kept
            if not outlives(o, step, keeper, node) or not still_attached(o, step, operand, node):
                continue
            seen.add(node)
            head = loop_head(step.loop)
            yield Retained(
                *o.head(
                    operand,
                    o.flow.origin(step.backward, "its graph is used here"),
                    o.flow.origin(head, "in every step of this loop"),
                ),
                o.flow.operand(operand, NOTHING), keeper, how, o.flow.span(head),
            )  # fmt: skip


def keeps(node: ast.AST, losses: frozenset[str]) -> tuple[str, ast.Name, Literal["append", "add"]] | None:
    """`total += loss`, `total = total + loss`, `losses.append(loss)`: the keeper, the loss, and how."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        keeper, loss = dotted(node.target), loss_in(node.value, losses)
        if keeper is not None and loss is not None:
            return keeper, loss, "add"
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        keeper = dotted(node.targets[0])
        if keeper is not None and isinstance(node.value.op, ast.Add):
            for one, other in ((node.value.left, node.value.right), (node.value.right, node.value.left)):
                loss = loss_in(other, losses)
                if dotted(one) == keeper and loss is not None:
                    return keeper, loss, "add"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
        if len(node.args) != 1:
            return None
        keeper, loss = dotted(node.func.value), loss_in(node.args[0], losses)
        if keeper is not None and loss is not None:
            return keeper, loss, "append"
    return None


def loss_in(node: ast.expr, losses: frozenset[str]) -> ast.Name | None:
    """The loss that a value is, alone or times something."""
    if isinstance(node, ast.Name):
        return node if node.id in losses else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return loss_in(node.left, losses) or (loss_in(node.right, losses) if isinstance(node.op, ast.Mult) else None)
    return None


def outlives(o: Outline, step: Step, keeper: str, node: ast.AST) -> bool:
    """Whether the keeper exists before the loop, is not emptied in it, and is no loss itself."""
    if keeper.split(".", 1)[0] in step.losses | step.tensors:
        return False
    statement = o.statement(node)
    rest = [n for n in step.nodes if isinstance(n, ast.stmt) and n is not statement]
    for other in rest:
        if isinstance(other, (ast.Assign, ast.AnnAssign, ast.Delete)) and touches(keeper, stored([other])):
            return False
        value = other.value if isinstance(other, ast.Expr) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr in ("clear", "pop", "popleft") and dotted(value.func.value) == keeper:
                return False
    known = [v for v in o.assignments(keeper, node) if v is not None]
    for value in known:
        if isinstance(value, ast.Call) and (o.qualname(value.func) or "").endswith("deque"):
            return False
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper():
            return False  # a meter of some class
    if "." in keeper and not known:
        return False
    return any(isinstance(v, (ast.Constant, ast.List, ast.UnaryOp, ast.Call)) for v in known)


def still_attached(o: Outline, step: Step, operand: ast.Name, node: ast.AST) -> bool:
    """Whether the name still holds the loss with its graph: never rebound to a number or a detached copy, no no_grad."""
    for above in o.above(node):
        if above is step.loop:
            break
        if isinstance(above, ast.With) and any(
            "no_grad" in o.flow.text(i.context_expr) or "inference_mode" in o.flow.text(i.context_expr)
            for i in above.items
        ):
            return False
    for value in step.values.get(operand.id, ()):
        if value is None:
            continue
        text = o.flow.text(value)
        if ".item()" in text or ".detach()" in text or ".data" in text or is_cast(value) or "no_grad" in text:
            return False
        if isinstance(value, ast.Constant):
            return False
    return not any(method(child) == "detach_" for child in step.nodes)


# -- the first call in the figure -------------------------------------------------------------------------------------


def drop_trained(o: Outline) -> None:
    """Withdraw the cold timers that time no benchmark: training, one pass over data, a file that warms up elsewhere."""
    flow = o.flow
    text = flow.source.text.lower()
    warms = "warm" in text
    called: dict[str, int] = {}
    for call in o.calls:
        name = call.func.id if isinstance(call.func, ast.Name) else method(call)
        called[name] = called.get(name, 0) + 1
    for key, event in list(flow.events.items()):
        if not isinstance(event, ColdTimer):
            continue
        region = flow.source.text[event.start.end : event.span.start]
        name = event.function.rsplit(".", 1)[-1]
        trains = any(word in region for word in (".backward(", ".step(", "in enumerate(", "loader", "epoch", "tqdm"))
        named = any(word in name.lower() + text[: event.start.start][-400:] for word in ("epoch", "compile", "load"))
        looped = o.loop(event.node) is not None or len(region) > 2_000  # too long for a benchmark
        if warms or trains or named or looped or called.get(name, 0) > 1 or event.start.end > event.span.start:
            del flow.events[key]
