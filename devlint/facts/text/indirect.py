"""Calls that are not written as calls of the function: `Thread(target=f, args=(x,))`, `partial(f, x)`, `pool.map(f, xs)`.

Each is given as the call that it comes to, made of the nodes of the file: `f(x)`. Of what is mapped over, the whole stands
for its elements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.text.references import given
from devlint.facts.text.scan import Scan, Site

_TARGETS = ("Process", "Thread", "Timer")  # target=f, args=(...), kwargs={...}
_FIRST = ("partial", "submit", "to_thread", "checkpoint")  # f, *args, **kwargs
_MAPS = ("map", "imap", "imap_unordered", "map_async")  # f, *iterables
_PACKED = ("apply_async", "start_new_thread")  # f, args, kwargs


def indirect_calls(scan: Scan, name: str) -> Iterator[Site]:
    """The calls, by others, of whatever has a last name."""
    for runner in _TARGETS:
        for site in scan.calls.get(runner, ()):
            call = site.call
            for target in given(call, "target", -1):
                args = next(iter(given(call, "args", -1)), None)
                kwargs = next(iter(given(call, "kwargs", -1)), None)
                yield from made(site, target, sequence(args), named(kwargs), name)
    for runner in (*_FIRST, *_MAPS, *_PACKED):
        for site in scan.calls.get(runner, ()):
            call = site.call
            if not call.args:
                continue
            target, *rest = call.args
            if runner in _PACKED:
                second = rest[0] if rest else next(iter(given(call, "args", -1)), None)
                third = rest[1] if len(rest) > 1 else next(iter(given(call, "kwds", -1)), None)
                yield from made(site, target, sequence(second), named(third), name)
            elif not any(isinstance(a, ast.Starred) for a in rest):
                yield from made(site, target, rest, call.keywords if runner in _FIRST else [], name)


def made(site: Site, target: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], name: str) -> Iterator[Site]:
    last = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
    if last == name:
        yield Site(ast.copy_location(ast.Call(target, args, keywords), site.call), site.caller)


def sequence(node: ast.expr | None) -> list[ast.expr]:
    """The arguments in a tuple or list that is written out; none are known of another expression."""
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else []


def named(node: ast.expr | None) -> list[ast.keyword]:
    """The keywords in `{"x": x}` or `dict(x=x)`."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [ast.keyword(k.value, v) for k, v in pairs if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [k for k in node.keywords if k.arg is not None]
    return []
