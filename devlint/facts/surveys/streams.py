"""Facts about streams: tensors that cross from one to another with nothing that orders the two."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.events import Create, Move, StreamUse
from devlint.facts.surveys.outline import Outline, inside, method, stored
from devlint.facts.values import may_be_accelerator
from devlint.model import Origin

_CONTEXTS = frozenset(f"torch.{m}.stream" for m in ("cuda", "xpu", "npu", "mtia"))
_ORDERS = frozenset({"synchronize", "wait_stream", "wait_event", "wait", "record_stream", "query", "item", "cpu"})


def stream_uses(o: Outline) -> Iterator[StreamUse]:
    for node in ast.walk(o.tree) if "stream" in o.flow.source.text else ():
        if isinstance(node, ast.With):
            stream = stream_of(o, node)
            if stream is not None:
                yield from leaves(o, node, stream)
                yield from enters(o, node, stream)


def stream_of(o: Outline, node: ast.With) -> str | None:
    """The stream that a `with` makes current, as the code writes it."""
    for item in node.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or o.qualname(call.func) not in _CONTEXTS:
            continue
        if len(call.args) == 1 and isinstance(call.args[0], (ast.Name, ast.Attribute)):
            return o.flow.text(call.args[0])
    return None


def orders(nodes: list[ast.AST]) -> bool:
    return any(method(n) in _ORDERS or (isinstance(n, ast.Attribute) and n.attr in _ORDERS) for n in nodes)


def leaves(o: Outline, block: ast.With, stream: str) -> Iterator[StreamUse]:
    """Names bound on the stream and read after the block."""
    made = {
        target.id: child
        for child in inside(block.body)
        if isinstance(child, ast.Assign) and isinstance(child.value, (ast.Call, ast.BinOp))
        for target in child.targets
        if isinstance(target, ast.Name)
    }
    if not made or orders(list(inside(block.body))) or any(isinstance(s, ast.Return) for s in block.body):
        return
    siblings = o.block(block)
    for following in siblings[siblings.index(block) + 1 :]:
        nodes = list(inside([following]))
        if orders(nodes):
            return
        other = stream_of(o, following) if isinstance(following, ast.With) else ""
        if isinstance(following, ast.With) and other == stream:
            continue
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in made:
                if isinstance(following, (ast.Return, ast.Delete)) and isinstance(o.parent.get(node), ast.stmt):
                    return
                yield crossing(o, node, made[node.id], node.id, stream, other or "")
                return
        for name in stored([following]) & made.keys():
            del made[name]
        if not made or isinstance(following, (ast.For, ast.While, ast.If, ast.Try)):
            return


def enters(o: Outline, block: ast.With, stream: str) -> Iterator[StreamUse]:
    """Tensors put on an accelerator before the block and read in it."""
    siblings = o.block(block)
    before = siblings[: siblings.index(block)]
    events = {id(e.node): e for e in o.flow.events.values() if isinstance(e, (Create, Move))}
    made: dict[str, ast.AST] = {}
    for statement in before:
        if orders(list(inside([statement]))):
            made.clear()
            continue
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            for name in stored([statement]) & made.keys():
                del made[name]
            continue
        target = statement.targets[0]
        event = events.get(id(statement.value))
        if isinstance(target, ast.Name):
            made.pop(target.id, None)
            place = event.result if isinstance(event, Create) else event.target if isinstance(event, Move) else None
            if place is not None and may_be_accelerator(place.device) and event is not None:
                if isinstance(event, Create) and event.device is None:
                    continue
                made[target.id] = statement
    for statement in block.body:
        nodes = list(inside([statement]))
        if orders(nodes):
            return
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in made:
                yield crossing(o, node, made[node.id], node.id, "", stream)
                return


def crossing(o: Outline, use: ast.AST, made: ast.AST, path: str, stream: str, other: str) -> StreamUse:
    span = o.flow.span(made)
    where = f"made on `{stream}` here" if stream else "made on the current stream here"
    return StreamUse(*o.head(use, Origin(span, where)), span, path, stream, other)
