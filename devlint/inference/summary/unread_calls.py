"""Calls that cannot be read. Their result is probably where their tensors are. They may move every module and rewrite every
container and field that they can reach."""

from __future__ import annotations

import ast

from devlint.inference.summary import moves
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.frame import Frame, unread
from devlint.inference.summary.watching import Unread
from devlint.inference.terms.places import (
    CPU,
    Origin,
    Path,
    Places,
    called_at,
    is_accelerator,
    may_be_accelerator,
    single,
    softened,
    unread_root,
    with_zero_dim,
)
from devlint.inference.terms.values import Value, given

#: Builtins and library functions that only look at what they get [Python's library reference].
PLAIN_FAMILIES = frozenset({"number", "string", "bool", "none"})


def call(
    frame: Frame, node: ast.AST, arguments: Arguments, receiver: Value | None = None, why: Unread = "callee"
) -> Value:
    """A call of something that cannot be read, which gets these arguments."""
    if frame.analyser.watch is not None:
        frame.analyser.watch.unread(frame, node, why)
    reach(frame, [*arguments.values(), *([receiver] if receiver is not None else [])])
    return _made_of_text(frame, node, arguments) or guess(frame, node, arguments)


def _made_of_text(frame: Frame, node: ast.AST, arguments: Arguments) -> Value | None:
    """`tokenizer(..., return_tensors="pt")` gives tensors of host memory [transformers documentation, "Tokenizer"]."""
    asked = arguments.named.get("return_tensors")
    if asked is None or asked[1].constant != "pt":
        return None
    origin = Origin("loader", node, frame.path, "return_tensors")
    return Value("batch", single(CPU, origin), proved=False)


def reach(frame: Frame, values: list[Value]) -> None:
    """Forget what such a call may change."""
    for value in values:
        if value.kind == "bound" and value.ref is not None:
            reach(frame, [value.ref[0]])
        if value.kind == "partial" and value.ref is not None:
            reach(frame, [value.ref[0], *value.ref[1].values()])
        if value.kind == "function" and isinstance(value.ref, tuple):
            reach(frame, _captured(frame, value))
        objects = tuple(frame.heap.reachable(value))
        if value.kind == "unknown" and value.path is not None and not value.objects:
            objects = (*objects, ("path", value.path))
        if objects:
            frame.heap.forget(objects)
            if frame.analyser.watch is not None:
                frame.analyser.watch.forgot(frame, objects)


def _captured(frame: Frame, value: Value) -> list[Value]:
    """What a function that is handed over may change: its object, what its free names hold, and the globals that it binds."""
    function, me = value.ref
    found = [me] if me is not None else []
    for node in function.file.nodes_of(function.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            held = frame.state.names.get(node.id)
            if held is not None and (held.objects or held.kind == "bound"):
                found.append(held)
    for name in function.file.rebound & frame.state.names.keys():
        if any(isinstance(node, ast.Name) and node.id == name for node in function.file.nodes_of(function.node)):
            frame.bind(name, unread(function.node, "." + name))
    return found


def guess(frame: Frame, node: ast.AST, arguments: Arguments, callee: Places = ()) -> Value:
    """The result of such a call: probably on the device of its tensors, else where the module that is called is."""
    tensors = [value for value in arguments.values() if value.places and (value.is_tensor or _is_moved(value.places))]
    far = [value for value in tensors if may_be_accelerator(value.places)]
    if far:
        return Value("unknown", with_zero_dim(softened(far[0].places), None), proved=False)
    if callee and may_be_accelerator(callee):
        return Value("unknown", with_zero_dim(softened(callee), None), proved=False)
    if tensors and all(_is_host(value.places) for value in tensors):
        if all(value.is_tensor or value.kind in PLAIN_FAMILIES for value in arguments.values()):
            return Value("unknown", with_zero_dim(softened(tensors[0].places), None), proved=False)
    if (
        isinstance(node, ast.Call)
        and not node.args
        and not node.keywords
        and isinstance(node.func, (ast.Name, ast.Attribute))
    ):
        return given((unread_root("", f"{ast.unparse(node.func)}()"),))  # the same call gives what is at the same place
    return unread(node)


def _is_moved(places: Places) -> bool:
    return all(each.origin is not None and each.origin.why == "moved" for each in places)


def _is_host(places: Places) -> bool:
    return all(each.atom == CPU for each in places)


def call_unknown(
    frame: Frame, node: ast.Call, callee: Value, arguments: Arguments, receiver: Value | None = None
) -> Value:
    """A call of something given: perhaps a module, which needs its input where it is."""
    if frame.analyser.watch is not None:
        frame.analyser.watch.unread(frame, node, "callee")
    moves.moved_in_place(frame, callee)
    places = callee.places
    if callee.path is not None and ("path", callee.path) in frame.heap.things:
        places = frame.heap.home(("path", callee.path))
    for at, value in arguments.positional[:1]:
        if value.may_be_tensor and value.places and places and _is_somewhere(places):
            from devlint.inference.summary.model import Operand

            first = Operand(node.func, "unknown", places, False, callee.path)
            frame.need("module", "exact", _name_of(node), first, frame.operand(at, value), node, guessed=True)
    reach(frame, [*arguments.values(), *([receiver] if receiver is not None else [])])
    of_text = _made_of_text(frame, node, arguments)
    if of_text is not None:
        return of_text
    if callee.path is not None and places is callee.places and not callee.path[0].startswith("%"):
        return _result_of_given(node, callee.path) or guess(frame, node, arguments, places)
    is_module = callee.path is None or ("path", callee.path) in frame.heap.things
    return guess(frame, node, arguments, places if is_module else ())


def _result_of_given(node: ast.Call, path: Path) -> Value | None:
    """What a call of something given gives: probably where that is. A call of this function tells what it is."""
    result = given((*path, called_at(node)))
    return result._replace(places=softened(result.places), proved=False) if result.path is not None else None


def _name_of(node: ast.Call) -> str:
    return ast.unparse(node.func)


def _is_somewhere(places: Places) -> bool:
    return any(each.atom.tag in ("place", "names", "at") and each.atom != CPU for each in places)


__all__ = ["call", "call_unknown", "guess", "is_accelerator", "reach"]
