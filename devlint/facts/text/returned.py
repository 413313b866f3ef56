"""What a method gives back that is on the host, element by element, by its text alone: `return loss, accuracy.item()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from devlint.facts.text.nodes import children
from devlint.facts.values import CPU, NONE, NUMBER, Value

Mark = Literal["number", "array", "list", "host", "none", ""]  # "": a tensor somewhere, or not known
#: By position or key of what is returned; by None where it is one thing. Empty where nothing of it is on the host.
Returned: TypeAlias = Mapping[int | str | None, Mark]

_SHAPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_METHODS: Mapping[str, Mark] = {"item": "number", "numpy": "array", "tolist": "list", "cpu": "host"}
#: Methods of a tensor or an array that give another form of it.
_SAME = frozenset(
    {
        "squeeze", "unsqueeze", "detach", "clone", "contiguous", "view", "reshape", "flatten", "transpose", "permute", "float",
        "double", "half", "long", "int", "bool", "mean", "sum", "astype", "copy",
    }
)  # fmt: skip
_BINDING = frozenset(
    {
        ast.Return, ast.Yield, ast.YieldFrom, ast.Assign, ast.AugAssign, ast.Tuple, ast.List, ast.For, ast.withitem,
        ast.NamedExpr, ast.arg,
    }
)  # fmt: skip
_NUMBERS = frozenset({"float", "int", "len", "bool"})
_WORDS = (".item(", ".numpy(", ".tolist(", ".cpu(", "float(", "int(", "len(")


def may_return_host_data(text: str) -> bool:
    """Whether the text of a class has a word without which `returned` finds nothing worth knowing."""
    return any(word in text for word in _WORDS)


def returned(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Returned:
    """What every `return` of a method gives in the same place."""
    statements: list[ast.Return] = []
    bound: dict[str, list[ast.expr | None]] = {}
    for node in own_nodes(method):
        if type(node) not in _BINDING:
            continue
        if isinstance(node, ast.Return):
            statements.append(node)
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            return {}
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bound.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            bound.setdefault(node.target.id, []).append(None)
        elif isinstance(node, (ast.Tuple, ast.List, ast.For, ast.withitem, ast.NamedExpr, ast.arg)):
            for name in stored(node):
                bound.setdefault(name, []).append(None)
    once = {name: values[0] for name, values in bound.items() if len(values) == 1 and values[0] is not None}
    found: Returned | None = None
    for statement in statements:
        parts = marks(statement.value, once)
        if found is not None and found.keys() != parts.keys():
            return {}
        found = parts if found is None else {k: m if parts[k] == m else "" for k, m in found.items()}
    return found if found is not None and any(m not in ("", "none") for m in found.values()) else {}


def own_nodes(method: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes inside it."""
    stack = list(children(method))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SHAPES):
            stack.extend(children(node))


def stored(node: ast.AST) -> Iterator[str]:
    """The names that a target, or a parameter, binds."""
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Tuple, ast.List)):
        yield from (e.id for e in node.elts if isinstance(e, ast.Name) and isinstance(e.ctx, ast.Store))
    else:
        target = node.optional_vars if isinstance(node, ast.withitem) else getattr(node, "target", None)
        if isinstance(target, ast.Name):
            yield target.id


def marks(node: ast.expr | None, once: Mapping[str, ast.expr | None]) -> Returned:
    if isinstance(node, ast.Name):
        node = once.get(node.id) or node
    if isinstance(node, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in node.elts):
        return {i: mark(e, once) for i, e in enumerate(node.elts)}
    if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in node.keys):
        return {
            k.value: mark(v, once)
            for k, v in zip(node.keys, node.values, strict=True)
            if isinstance(k, ast.Constant) and isinstance(k.value, str)
        }
    return {None: mark(node, once)}


def mark(node: ast.expr | None, once: Mapping[str, ast.expr | None], depth: int = 0) -> Mark:
    """What one expression is. `once`: what the names hold that are bound once."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return "none"
    if isinstance(node, ast.Name) and depth < 3:
        value = once.get(node.id)
        return mark(value, once, depth + 1) if value is not None else ""
    if isinstance(node, ast.Constant):
        return "number" if isinstance(node.value, (int, float)) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        if node.func.attr in _METHODS:
            return _METHODS[node.func.attr]
    inner = part_of(node)
    if inner is not None:
        of_whole = mark(inner, once, depth + 1)
        return of_whole if of_whole in ("host", "array") else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
        return "number"
    if isinstance(node, ast.BinOp):
        sides = {mark(node.left, once, depth + 1), mark(node.right, once, depth + 1)}
        return "number" if sides == {"number"} else ""
    return ""


def part_of(node: ast.expr) -> ast.expr | None:
    """What an expression is a part or another form of: `x` of `x[0]` and `x.squeeze(0).float()`."""
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        return node.func.value
    return None


def as_returned(known: Returned | None, whole: Value) -> Value:
    """What a call gives whose parts on the host are known. `whole`: what each of the others is."""
    if not known:
        return whole
    values = {key: host_value(m, whole) for key, m in known.items()}
    if None in values:
        return values[None]
    if all(isinstance(key, int) for key in values):
        return Value("tuple", elements=tuple(values.values()))
    return Value("dict", elements={str(key): value for key, value in values.items()})


def host_value(mark: Mark, other: Value) -> Value:
    if mark == "host":
        return Value("tensors", CPU, because=other.because)
    if mark == "":
        return other
    return {"number": NUMBER, "array": Value("ndarray"), "list": Value("list"), "none": NONE}[mark]
