"""What a method gives back that is on the host, element by element, by its text alone: `return loss, accuracy.item()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from devlint.facts.text.method_names import SAME_PLACE
from devlint.facts.text.nodes import children, returns
from devlint.facts.values import CPU, NONE, NOTHING, NUMBER, Value

#: "": a tensor somewhere, or not known; "either": what is no tensor by some `return`, and may be one by another.
Mark = Literal["constant", "number", "array", "list", "host", "none", "either", ""]
#: By position or key of what is returned; by None where it is one thing. Empty where nothing of it is on the host.
Returned: TypeAlias = Mapping[int | str | None, Mark]
#: What the `return`s of a method give, those together whose results have the same positions or keys.
Forms: TypeAlias = tuple[Returned, ...]

#: An entry of a table with its key: `found["loss"] = ...`.
Entry: TypeAlias = tuple[str, ast.Assign]

_SHAPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_METHODS: Mapping[str, Mark] = {"item": "number", "numpy": "array", "tolist": "list", "cpu": "host"}
#: Methods of a tensor or an array that give another form of it.
_SAME = SAME_PLACE | {"mean", "sum", "astype", "copy"}
_BINDING = frozenset(
    {
        ast.Return, ast.Yield, ast.YieldFrom, ast.Assign, ast.AugAssign, ast.Tuple, ast.List, ast.For, ast.withitem,
        ast.NamedExpr, ast.arg, ast.AnnAssign,
    }
)  # fmt: skip
_NUMBERS = frozenset({"float", "int", "len", "bool"})
#: Functions of numpy that give arrays whatever they are given. Others give a tensor for a tensor: `np.sqrt(x)`.
_ARRAYS = frozenset(
    {"array", "asarray", "stack", "concatenate", "vstack", "hstack", "zeros", "ones", "arange", "unique"}
)
_NUMPY = ("np", "numpy")
_WORDS = (
    ".item(", ".numpy(", ".tolist(", ".cpu(", "float(", "int(", "len(",
    *(f"{package}.{name}(" for package in _NUMPY for name in sorted(_ARRAYS)),
)  # fmt: skip
_NO_TENSORS: Final[frozenset[Mark]] = frozenset({"constant", "number", "array", "list", "either"})


def may_return_host_data(text: str) -> bool:
    """Whether the text of a class has a word without which `returned` finds nothing worth knowing."""
    return any(word in text for word in _WORDS)


def returned(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Returned:
    """What every `return` of a method gives in the same place; nothing where they give different numbers of parts."""
    return of_parts(forms(method), None)


def forms(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Forms:
    """What the `return`s of a method give, by the positions or keys that they have; none where nothing is on the host."""
    if not returns(method):
        return ()
    statements: list[ast.Return] = []
    bound: dict[str, list[ast.expr | None]] = {}
    filled: dict[str, list[Entry]] = {}
    apart: set[int] = set()  # targets that are taken apart with what they get
    for node in own_nodes(method):
        if type(node) not in _BINDING or id(node) in apart:
            continue
        if isinstance(node, ast.Return):
            statements.append(node)
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            return ()
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bound.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.Assign) and (entry := entry_of(node)) is not None:
            filled.setdefault(entry[0], []).append((entry[1], node))
        elif isinstance(node, ast.Assign) and (parts := unpacked(node)):
            apart.add(id(node.targets[0]))
            for name, value in parts.items():
                bound.setdefault(name, []).append(value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            bound.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            bound.setdefault(node.target.id, []).append(None)
        elif isinstance(node, (ast.Tuple, ast.List, ast.For, ast.withitem, ast.NamedExpr, ast.arg)):
            for name in stored(node):
                bound.setdefault(name, []).append(None)
    once = {name: values[0] for name, values in bound.items() if len(values) == 1 and values[0] is not None}
    tables = {
        name: in_the_end(method, entries, statements)
        for name, entries in filled.items()
        if is_table(method, name, once.get(name), entries)
    }
    found: dict[frozenset[int | str | None], dict[int | str | None, Mark]] = {}
    for statement in statements:
        given = marks(statement.value, once, tables)
        form = found.setdefault(frozenset(given), dict(given))
        form.update({key: either(form[key], said) for key, said in given.items()})
    return tuple(found.values()) if any(map(says_something, found.values())) else ()


def of_every(known: Forms) -> Returned:
    """What holds for a part whichever `return` gives it, by all positions and keys that they have."""
    found: dict[int | str | None, Mark] = {}
    whole = any(None in form for form in known)
    for form in known if len(known) > 1 else ():
        for key, said in form.items():
            if key is not None:
                found[key] = either(found.get(key, said), "" if whole else said)
    return found if len(known) > 1 else known[0] if known else {}


def of_parts(known: Forms, count: int | None) -> Returned:
    """What a call gives that is taken apart into so many names; `count=None`: in any other way.

    What is returned as it is may have as many parts: `return self.decode(x)` beside `return x, scores`.
    """
    if len(known) < 2 or count is None:
        return known[0] if len(known) == 1 else {}
    whole = any(None in form for form in known)
    fitting = [form for form in known if None not in form and len(form) == count and all(map(is_place, form))]
    if len(fitting) != 1:
        return {}
    found = {key: either(mark, "") if whole else mark for key, mark in fitting[0].items()}
    return found if says_something(found) else {}


def says_something(parts: Returned) -> bool:
    return any(mark not in ("", "none") for mark in parts.values())


def is_place(key: int | str | None) -> bool:
    return isinstance(key, int)


def either(a: Mark, b: Mark) -> Mark:
    """What one of two things is."""
    if a == b:
        return a
    if "none" in (a, b):
        return b if a == "none" else a
    if "constant" in (a, b):  # `return 0.0` beside `return loss`, for a call that asks for none
        return b if a == "constant" else a
    return "either" if a in _NO_TENSORS or b in _NO_TENSORS else ""


def entry_of(node: ast.Assign) -> tuple[str, str] | None:
    """The name and the key of `found["loss"] = ...`."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    key = target.slice.value if isinstance(target.slice, ast.Constant) else None
    return (target.value.id, key) if isinstance(key, str) else None


def unpacked(node: ast.Assign) -> dict[str, ast.expr]:
    """What each name gets of `values, counts = np.unique(x, return_counts=True)`."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Call):
        return {}
    names = [part.id for part in target.elts if isinstance(part, ast.Name)]
    if len(names) != len(target.elts):
        return {}
    return {name: ast.Subscript(node.value, ast.Constant(i), ast.Load()) for i, name in enumerate(names)}


def in_the_end(
    method: ast.FunctionDef | ast.AsyncFunctionDef, entries: Sequence[Entry], returns: Sequence[ast.Return]
) -> list[Entry]:
    """The entries of a table that nothing replaces, whatever runs, before what is below them returns it."""
    whatever = {id(statement) for statement in method.body}
    left: list[Entry] = []
    for key, node in entries:
        later = [n.lineno for k, n in entries if k == key and id(n) in whatever and n.lineno > node.lineno]
        if not later or any(node.lineno < each.lineno < min(later) for each in returns):
            left.append((key, node))
    return left


def is_table(method: ast.AST, name: str, value: ast.expr | None, entries: Sequence[Entry]) -> bool:
    """Whether a name is bound to an empty dict, and nothing is done with it but to fill it by constant keys and return it."""
    called = value.func if isinstance(value, ast.Call) and not value.args and not value.keywords else None
    empty = isinstance(value, ast.Dict) and not value.keys
    if not empty and not (isinstance(called, ast.Name) and called.id == "dict"):
        return False
    nodes = list(own_nodes(method))
    read = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    given = [n for n in nodes if isinstance(n, ast.Return) and isinstance(n.value, ast.Name) and n.value.id == name]
    return len(read) == len(entries) + len(given)


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


def marks(
    node: ast.expr | None,
    once: Mapping[str, ast.expr | None],
    tables: Mapping[str, Sequence[Entry]],
) -> Returned:
    """What the parts of what is returned are. `tables`: the entries of dicts that are filled one by one."""
    if isinstance(node, ast.Name) and node.id in tables:
        found: dict[int | str | None, Mark] = {}
        for key, entry in tables[node.id]:
            found[key] = either(found.get(key, "none"), mark(entry.value, once))
        return found
    if isinstance(node, ast.Name):
        held = once.get(node.id)
        node = node if held is None or isinstance(held, ast.Dict) else held  # entries of a dict may be set again
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
        return "constant" if isinstance(node.value, (int, float)) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        if node.func.attr in _METHODS:
            return _METHODS[node.func.attr]
    if isinstance(node, ast.Call) and makes_array(node.func):
        return "array"
    inner = part_of(node)
    if inner is not None:
        of_whole = mark(inner, once, depth + 1)
        return of_whole if of_whole in ("host", "array") else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
        return "number"
    if isinstance(node, ast.BinOp):
        sides = {mark(node.left, once, depth + 1), mark(node.right, once, depth + 1)}
        return "number" if sides <= {"number", "constant"} else ""
    return ""


def makes_array(function: ast.expr) -> bool:
    """Whether what is called gives an array, whatever it is given: `np.array`."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.value.id in _NUMPY and function.attr in _ARRAYS


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
    kinds = {
        "constant": NUMBER,
        "number": NUMBER,
        "array": Value("ndarray"),
        "list": Value("list"),
        "none": NONE,
        "either": NOTHING,
    }
    return kinds[mark]
