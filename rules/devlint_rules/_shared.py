"""What several rules need: which rule owns a meeting of devices, wording, and how to write a move."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal, TypeGuard

from devlint.api import (
    CPU,
    HOME,
    STALE,
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    InsertStatement,
    Meet,
    Operand,
    Origin,
    Part,
    Place,
    Safety,
    Site,
    Span,
    Value,
    cst,
    describe,
    is_surely_accelerator,
)

Owner = Literal["DEV101", "DEV102", "DEV103", "DEV104", "DEV105", "DEV106", "DEV113"]

# Functions that read or write by an index or a mask: the name and position of that argument, `self` counted.
_INDEX_OF = {
    "gather": ("index", 2),
    "scatter": ("index", 2),
    "scatter_add": ("index", 2),
    "scatter_reduce": ("index", 2),
    "index_select": ("index", 2),
    "index_add": ("index", 2),
    "index_copy": ("index", 2),
    "index_fill": ("index", 2),
    "index_reduce": ("index", 2),
    "take": ("index", 1),
    "take_along_dim": ("indices", 1),
    "put": ("index", 1),
    "masked_select": ("mask", 1),
    "masked_fill": ("mask", 1),
    "masked_scatter": ("mask", 1),
    "embedding": ("input", 0),
    "embedding_bag": ("input", 0),
}


def owner(meet: Meet) -> Owner:
    """The one rule that reports this meeting: that of its cause.

    The old tensor of a buffer is DEV113's, an attribute that does not move with its module DEV106's, a move whose
    result was dropped DEV105's, a factory call without a device DEV102's, unless it made a table that an object keeps and
    reads by an index. What remains is DEV103's where an input meets a
    module, DEV104's where an index or a mask meets what it reads, else DEV101's.
    """
    value = meet.off.value
    if value.type_name == STALE:
        return "DEV113"
    if meet.how == "restored":
        return "DEV101"
    if value.attribute is not None:
        return "DEV106"
    if value.discarded is not None:
        return "DEV105"
    if is_kept_table(meet):
        return "DEV104"
    if value.made:
        return "DEV102"
    if meet.how == "module":
        return "DEV103"
    return "DEV104" if index_of(meet) is not None else "DEV101"


def is_kept_table(meet: Meet) -> bool:
    """Whether an attribute that was made on the CPU is read by an index elsewhere: where it was made nobody knows of it."""
    index = index_of(meet)
    return index is meet.other and bool(meet.off.value.made) and isinstance(meet.off.node, ast.Attribute)


def index_of(meet: Meet) -> Operand | None:
    """Which of the two operands is the index or mask by which the other is read or written; None if neither is."""
    if meet.how == "index":
        if meet.operation != "index" or not isinstance(meet.node, ast.Subscript):
            return None
        return meet.other if meet.off.node is meet.node.value else meet.off
    name = meet.operation.rpartition(".")[2].removesuffix("_")
    if name not in _INDEX_OF or not isinstance(meet.node, ast.Call):
        return None
    keyword, position = _INDEX_OF[name]
    given = {k.arg: k.value for k in meet.node.keywords}.get(keyword)
    if given is None:
        position -= is_method(meet)
        given = meet.node.args[position] if 0 <= position < len(meet.node.args) else None
    return next((operand for operand in (meet.off, meet.other) if operand.node is given), None)


def was_taken(meet: Meet, facts: Facts) -> bool:
    """Whether no torch that the project admits refuses the meeting.

    Up to 1.12 a CPU tensor took an index from any device [pytorch/pytorch issue 90194].
    """
    index = index_of(meet) if meet.how == "index" else None
    tensor = meet.other if index is meet.off else meet.off
    old = facts.torch_newest is not None and facts.torch_newest < (1, 13)
    return old and index is not None and tensor.value.device == CPU


def is_method(meet: Meet) -> bool:
    """Whether the operation is written as a method of one of its operands: `x.gather(1, index)`."""
    function = meet.node.func if isinstance(meet.node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.value in (meet.off.node, meet.other.node)


def short(text: str, limit: int = 40) -> str:
    """Source on one line, with its end cut off where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def name(operand: Operand | Part) -> str:
    return f"`{short(operand.text)}`"


def whereabouts(value: Value) -> str:
    """Where a value is, as a verb phrase: `is on the CPU`, `may be on an accelerator`."""
    device = value.device
    if device == CPU or (is_surely_accelerator(device) and len(device) == 1):
        return f"is on {describe(device)}"
    if len(device) == 1 and device != HOME and not any(isinstance(place, Place) for place in device):
        return f"is on {describe(device)}, which may be an accelerator"
    return f"may be on {describe(device)}"


def which(value: Value) -> str:
    """Where a value is, as a relative clause: `which is on `device` and may be on an accelerator`."""
    return f"which {whereabouts(value).replace(', which may be an accelerator', ' and may be on an accelerator')}"


def operation(meet: Meet) -> str:
    """The operation of a meeting, as it reads after "in"."""
    if meet.how == "index":
        return "an index operation"
    if meet.how == "out":
        return f"`out=` of `{meet.operation}`"
    if meet.how == "module":
        return f"the call of {callee(meet)}"
    return f"`{meet.operation}`"


def callee(meet: Meet) -> str:
    """What is called, as the code writes it."""
    return f"`{short(ast.unparse(meet.node.func) if isinstance(meet.node, ast.Call) else meet.operation)}`"


def chain(node: cst.BaseExpression, *methods: str) -> cst.BaseExpression:
    """`node.detach().cpu()` for the methods given, with parentheses around `node` where it needs them."""
    built = parenthesized(node)
    for method in methods:
        built = cst.Call(cst.Attribute(built, cst.Name(method)))
    return built


def parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    """`node` so that `.name` can follow it."""
    atoms = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.Dict, cst.Set, cst.ListComp)
    if isinstance(node, atoms) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def as_argument(node: cst.BaseExpression) -> cst.BaseExpression:
    """`node` as an argument of a call: a tuple without parentheses gets them."""
    if isinstance(node, cst.Tuple) and not node.lpar:
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def moved(node: cst.BaseExpression, device: cst.BaseExpression) -> cst.BaseExpression:
    """`node.to(device)`."""
    return cst.Call(cst.Attribute(parenthesized(node), cst.Name("to")), args=[cst.Arg(device)])


def is_path(node: ast.expr) -> bool:
    """Whether an expression is a name or a chain of attributes of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def device_of(other: Operand, scope: Mapping[str, Value], facts: Facts, at: Span) -> str | None:
    """An expression, valid at `at`, where `scope` holds, for the device that `other` is on; None when there is none.

    A device variable, else the tensor that `other` was taken from, else another tensor that is known to be there.
    """
    scope = facts.bound_at(scope, at)
    if other.value.is_unplaced:
        return own_device(other.node, scope)
    found = facts.device_expression(scope, other.value.device)
    if found is not None and not found.endswith(".device"):
        return found  # a device variable
    path = ast.unparse(base(other.node))
    known = scope.get(path)
    if known is not None and known.device == other.value.device:
        if known.is_tensor and not (known.kind == "tensors" and facts.holds_several(path)):
            return f"{path}.device"
        if known.kind == "module" and found is None:
            return f"next({path}.parameters()).device"
    return found


def own_device(node: ast.expr, scope: Mapping[str, Value]) -> str | None:
    """The device of a tensor that is written as a part of something in scope, `data.x.device`, or as a slice of one; None
    for what is computed."""
    while isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Tuple, ast.Slice)):
        node = node.value
    root = node
    while isinstance(root, ast.Attribute) or (isinstance(root, ast.Subscript) and isinstance(root.slice, ast.Constant)):
        root = root.value
    return f"{ast.unparse(node)}.device" if isinstance(root, ast.Name) and root.id in scope else None


def base(node: ast.expr) -> ast.expr:
    """What a view is a view of: `x` of `x[:, None]` and of `x.unsqueeze(0)`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def is_accelerator(device: str, facts: Facts) -> str:
    """The test that a device variable is not the CPU, which holds for a `torch.device` and, where it may be one, a string."""
    bound = re.findall(rf"^[ \t]*{re.escape(device)}[ \t]*(?::[^=\n]+)?=[ \t]*([^\n]+)", facts.text, re.MULTILINE)
    made = ("torch.device(", "current_accelerator(")
    is_device = bool(bound) and all(any(m in b for m in made) and not b.rstrip().endswith(".type") for b in bound)
    return f'{device}.type != "cpu"' if is_device else f'str({device}) != "cpu"'


def is_local(facts: Facts, function: str, path: str) -> bool:
    """Whether assigning to `path` in `function` cannot turn a name of an outer scope into an unbound local.

    True at module level, for attributes, and for names that the function binds itself. False where functions of one
    name cannot be told apart and one of them does not bind it.
    """
    if not function or "." in path:
        return True
    tables = _tables(facts.text, facts.path).get(function.replace(".<locals>", ""), ())
    return bool(tables) and all(path in table.get_identifiers() and table.lookup(path).is_local() for table in tables)


@lru_cache(maxsize=1)
def _tables(text: str, path: str) -> dict[str, list[symtable.SymbolTable]]:
    """The symbol tables of a file by the dotted names of their functions and classes."""
    found: dict[str, list[symtable.SymbolTable]] = {}
    pending = [("", symtable.symtable(text, path, "exec"))]
    for prefix, table in pending:  # which grows
        for child in table.get_children():
            name = prefix + child.get_name()
            found.setdefault(name, []).append(child)
            pending.append((f"{name}.", child))
    return found


def _move_once(meet: Meet, site: Site) -> Fix | None:
    """One move, where it is bound, of what a loop yields and is used more than once afterwards: a part with a name, or an
    entry. None where it is used once, is bound in several places, or is used on the host as well."""
    root = meet.off.node
    while (
        isinstance(root, ast.Subscript) and isinstance(root.slice, ast.Constant) and isinstance(root.slice.value, str)
    ):
        root = root.value
    if not isinstance(root, ast.Name) or meet.how in ("inplace", "out", "index"):
        return None
    scope = _scope_around(root, site.facts.text)
    path = ast.unparse(meet.off.node)
    bound = [
        n for n in _own_nodes(scope) if isinstance(n, ast.Name) and n.id == root.id and isinstance(n.ctx, ast.Store)
    ]
    if scope is None or len(bound) != 1:
        return None
    uses = [
        n for n in _own_nodes(scope) if isinstance(n, type(meet.off.node)) and _is_read(n) and ast.unparse(n) == path
    ]
    if len(uses) < 2 or _is_used_on_host(scope, path) or _is_set(scope, path):
        return None
    statement = next((n for n in _own_nodes(scope) if isinstance(n, ast.stmt) and _gives(n, bound[0])), None)
    text = site.facts.text
    if isinstance(statement, ast.For) and root is not meet.off.node:
        place = span_of(statement.body[0], text)
    elif isinstance(statement, ast.Assign) and statement.targets == [bound[0]] and meet.bound is not None:
        place = span_of(statement, text)
    else:
        return None
    device = device_of(meet.other, meet.scope, site.facts, place)
    if device is None or _is_bound_in(statement, device.partition(".")[0]) or place.start >= meet.off.span.start:
        return None
    if isinstance(statement, ast.For):
        paths = _entries_off(meet, statement, root.id, site.facts)
        assigned = _assign_all_moved(paths, device, site)
        title = f"Move {', '.join(f'`{each}`' for each in paths)} to `{device}` at the top of the loop"
        return Fix(title, safety(meet), (InsertStatement(place, assigned),))
    value = site.at(span_of(statement.value, text))
    if not isinstance(value, cst.BaseExpression) or site.has_comment(value):
        return None
    edit = Edit(value, moved(value, site.expression(device)))
    return Fix(f"Move `{path}` to `{device}` where it is assigned", safety(meet), (edit,))


def _entries_off(meet: Meet, loop: ast.For, root: str, facts: Facts) -> list[str]:
    """All entries of what a loop yields that are off in its body, as they are written, in their order."""
    found: dict[str, str] = {}
    for event in facts.events:
        if isinstance(event, Meet) and event.off.text.startswith(f"{root}[") and event.function == meet.function:
            node = event.off.node
            inside = loop.lineno < node.lineno <= (loop.end_lineno or 0)
            is_entry = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
            if inside and is_entry and event.other.value.device == meet.other.value.device:
                found.setdefault(ast.unparse(node), event.off.text)
    return list(found.values())


def _assign_all_moved(paths: list[str], device: str, site: Site) -> cst.Assign:
    """`a, b = a.to(device), b.to(device)`"""
    targets = [cst.Element(site.expression(path)) for path in paths]
    values = [cst.Element(moved(site.expression(path), site.expression(device))) for path in paths]
    if len(paths) == 1:
        return cst.Assign([cst.AssignTarget(targets[0].value)], values[0].value)  # type: ignore[arg-type]
    return cst.Assign([cst.AssignTarget(cst.Tuple(targets, lpar=[], rpar=[]))], cst.Tuple(values, lpar=[], rpar=[]))


class File:
    """Facts by identity: what is asked of them for each finding is worked out once."""

    __slots__ = ("facts",)

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and other.facts is self.facts

    def __hash__(self) -> int:
        return id(self.facts)


@lru_cache(maxsize=4)
def parsed(text: str) -> ast.Module | None:
    """The tree of a file; None where it is no Python, as a notebook with magics."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _scope_around(node: ast.expr, text: str) -> ast.AST | None:
    """The innermost function around a node of the file, or the module."""
    module = parsed(text)
    found: ast.AST | None = module
    for each in ast.walk(module) if module is not None else ():
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            start, end = (each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0)
            if start <= (node.lineno, node.col_offset) < end:
                found = each  # walked from the outside in
    return found


def _own_nodes(scope: ast.AST | None) -> Iterator[ast.AST]:
    """The nodes of a function or module without those of the functions and classes in it."""
    pending = list(ast.iter_child_nodes(scope)) if scope is not None else []
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def _is_read(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _is_set(scope: ast.AST, path: str) -> bool:
    stored = (n for n in _own_nodes(scope) if isinstance(n, ast.Subscript) and not _is_read(n))
    return any(ast.unparse(node) == path for node in stored)


def _is_used_on_host(scope: ast.AST, path: str) -> bool:
    """Whether the code moves or fetches it somewhere already."""
    methods = ("numpy", "cpu", "cuda", "to", "tolist", "item", "pin_memory")
    named = (n for n in _own_nodes(scope) if isinstance(n, ast.Attribute) and n.attr in methods)
    return any(ast.unparse(node.value) == path for node in named)


def _gives(statement: ast.stmt, name: ast.Name) -> bool:
    """Whether a statement is the one whose target holds a name."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(target is not None and any(n is name for n in ast.walk(target)) for target in targets)


def _is_bound_in(statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a name a value."""
    stored = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return any(node.id == name for node in stored)


def span_of(node: ast.expr | ast.stmt, text: str) -> Span:
    """Where a node of the file stands, in code points."""
    starts = _row_starts(text)

    def offset(row: int, column: int) -> int:
        line = text[starts[row - 1] : starts[row]]
        return starts[row - 1] + (column if line.isascii() else len(line.encode()[:column].decode(errors="replace")))

    return Span(offset(node.lineno, node.col_offset), offset(node.end_lineno or 0, node.end_col_offset or 0))


@lru_cache(maxsize=1)
def _row_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text)), len(text)]


def assign_moved(target: ast.expr, device: str, site: Site) -> cst.Assign:
    """The statement `x = x.to(device)` for a name or attribute chain."""
    path = ast.unparse(target)
    written = site.expression(path)
    return cst.Assign([cst.AssignTarget(written)], moved(site.expression(path), site.expression(device)))  # type: ignore[arg-type]


def safety(meet: Meet) -> Safety:
    """How far moving `meet.off` to the other operand's device may be trusted.

    Safe where torch must refuse the operation on every machine on which both devices differ: the move is a no-op on
    all others. Unsafe under the default assumption, which may be wrong about what is a tensor, for what is guessed to be
    one, and where an error is caught.
    """
    assumed = meet.guessed or (meet.level == "assume" and meet.other.value.device == HOME)
    return Safety.UNSAFE if assumed or meet.under.catches("RuntimeError") else Safety.SAFE


def move_fix(meet: Meet, site: Site) -> Fix | None:
    """Move the operand that is off to the device of the other: at the top of its loop, else where it is used.

    None where no expression for that device is in scope, where a comment would be lost, for one of two items of a list,
    and for the target of an in-place operation that is no plain local name.
    """
    off, facts = meet.off, site.facts
    if off.value.kind == "module" or off.span == meet.other.span:
        return None  # of two items of one list nobody can move the one
    target = isinstance(off.node, ast.Name) and is_local(facts, meet.function, off.node.id)
    if meet.loop is not None and isinstance(off.node, ast.Name):
        device = device_of(meet.other, meet.loop_scope, facts, meet.loop)
        if device is not None:
            statement = assign_moved(off.node, device, site)
            title = f"Move `{off.text}` to `{device}` at the top of the loop"
            return Fix(title, safety(meet), (InsertStatement(meet.loop, statement),))
    if (once := _move_once(meet, site)) is not None:
        return once
    device = device_of(meet.other, meet.scope, facts, meet.span)
    if device is None:
        return None
    title = f"Move {name(off)} to `{device}`"
    if meet.how in ("inplace", "out") and (meet.how == "out" or off.span.start <= meet.other.span.start):
        if meet.how == "out" or not target:
            return None
        return Fix(title, Safety.UNSAFE, (InsertStatement(off.span, assign_moved(off.node, device, site)),))
    node = site.at(off.span)
    if not isinstance(node, cst.BaseExpression) or site.has_comment(node):
        return None
    return Fix(title, safety(meet), (Edit(node, moved(node, site.expression(device))),))


def forgotten_module(meet: Meet) -> str | None:
    """The name of the module that made what is off, where it is on the CPU because nothing ever moved it."""
    value = meet.off.value
    if not value.is_tensor or value.moved or value.made or value.device != CPU:
        return None
    for path, known in meet.scope.items():
        is_left = known.kind == "module" and known.device == CPU and not known.moved and "<" not in path
        called = isinstance(meet.off.node, ast.Call) and ast.unparse(meet.off.node.func) == path
        is_left = is_left and (called or f"<optimizer> {path}" in meet.scope)
        if is_left and known.because and known.because[-1] in value.because:
            return path
    return None


def move_forgotten(path: str, meet: Meet, site: Site) -> Fix:
    """Move a module where it is made, and with it the tensors of the CPU that the call at hand gives it."""
    made = meet.scope[path].because[-1]
    device = device_of(meet.other, meet.scope, site.facts, made.span) if made.path is None else None
    title = f"Move `{path}` with `.to({device or '...'})` where it is created, and move its inputs"
    if device is None:
        return Fix(title, Safety.HINT)
    try:
        node = site.at(made.span)
    except LookupError:
        return Fix(title, Safety.HINT)
    if not isinstance(node, cst.Call) or site.has_comment(node):
        return Fix(title, Safety.HINT)
    edits = [Edit(node, moved(node, site.expression(device)))]
    call = meet.off.node
    for argument in call.args if isinstance(call, ast.Call) and ast.unparse(call.func) == path else ():
        known = meet.scope.get(ast.unparse(argument))
        place = span_of(argument, site.facts.text)
        if known is not None and known.is_tensor and known.device == CPU:
            given = site.at(place)
            if isinstance(given, cst.BaseExpression):
                edits.append(Edit(given, moved(given, site.expression(device))))
    return Fix(title, Safety.UNSAFE, tuple(edits))


def parted(meet: Meet, site: Site) -> Finding | None:
    """The finding at a move in a branch that leaves behind what the moved value meets later."""
    assert meet.branch is not None
    both = f"{name(meet.off)} and {name(meet.other)}"
    message = (
        f"{both} are on different devices in {operation(meet)} on {site.line(meet.span)}: "
        "this path moves only one of them"
    )
    fix = Fix(f"Move {both} under the same condition", Safety.HINT)
    return Finding(meet.branch, message, fix, trail(meet, meet.branch))


def trail(event: Event, span: Span) -> tuple[Origin, ...]:
    """The places that explain an event, without that of the finding itself and without repetitions."""
    return tuple(origin for origin in dict.fromkeys(event.because) if origin.span != span)


def is_initialized(span: Span, facts: Facts) -> bool:
    """Whether `__init__` of a module's base was called above `span`: before that a module registers nothing.

    True where the `__init__` around it calls none.
    """
    start = facts.text.rfind("def __init__", 0, span.start)
    end = facts.text.find("\n    def ", span.start)
    body = facts.text[start : end if end >= 0 else len(facts.text)]
    found = re.search(r"super\([^()]*\)\s*\.__init__\(|\w\.__init__\(\s*self\b", body)
    return start < 0 or found is None or start + found.start() < span.start


def is_none(node: ast.AST | None) -> bool:
    """Whether an expression is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def is_script(statement: ast.AST) -> TypeGuard[ast.If]:
    """Whether a statement is `if __name__ == "__main__":`, with no other branch."""
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test) and not statement.orelse
