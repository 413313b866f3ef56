"""Facts about the start of a program: CUDA touched before the visible devices are set, or when a module is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import LateSetting
from devlint.facts.surveys.outline import Outline, inside, method, own_nodes
from devlint.facts.text.nodes import asks_name

_VARIABLES = frozenset({"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
#: Calls of `torch.cuda` that start the driver, after which the variable is not read again [torch/cuda/__init__.py];
#: `device_count` is not among them: before the start it is asked anew each time.
_TOUCHES = frozenset(
    "torch.cuda." + name
    for name in (
        "is_available", "current_device", "get_device_name", "get_device_properties", "get_device_capability", "init",
        "set_device", "synchronize", "memory_allocated", "mem_get_info", "manual_seed", "current_stream", "Stream",
        "Event", "is_bf16_supported", "get_arch_list",
    )
) - {"torch.cuda.manual_seed"}  # fmt: skip
_QUERY = re.compile(r"(?:\A|_)(?:cuda|gpu)_.*available\Z|(?:\A|_)is_(?:cuda|gpu)_available\Z|\Acuda_is_available\Z")
_CHILDREN = re.compile(r"subprocess|Popen|spawn|Process\(|ray\.|submitit|os\.system|exec[vl]")


def late_settings(o: Outline) -> Iterator[LateSetting]:
    text = o.flow.source.text
    if "VISIBLE_DEVICES" in text and "PYTORCH_NVML_BASED_CUDA_CHECK" not in text:
        yield from late(o)
    if not o.test and not is_program(o.tree):
        yield from at_import(o)


def late(o: Outline) -> Iterator[LateSetting]:
    """A setting of the visible devices that CUDA has already been asked about on the way to it."""
    for node in ast.walk(o.tree):
        statement = setting(o, node)
        if statement is None:
            continue
        scope = o.scope(statement)
        whole = o.flow.text(scope) if scope is not o.tree else o.flow.source.text
        if _CHILDREN.search(whole):
            continue  # meant for processes that start later
        touch = before(o, statement)
        if touch is None and scope is not o.tree:
            function = scope
            while (outer := o.function(function)) is not None:
                function = outer
            top = function
            while o.parent.get(top) is not o.tree and o.parent.get(top) is not None:
                top = o.parent[top]
            if isinstance(top, ast.stmt):
                touch = before(o, top, runs_scripts=False)
        if touch is not None:
            origin = o.flow.origin(touch, "CUDA reads the variable once, here")
            name = o.flow.text(touch.func)
            yield LateSetting(*o.head(statement, origin), "late", o.flow.span(touch), name, "")


def setting(o: Outline, node: ast.AST) -> ast.stmt | None:
    """The statement, if it sets the visible devices: `os.environ[...] = ...`, `setdefault`, `putenv`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if o.qualname(target.value) == "os.environ" and isinstance(target.slice, ast.Constant):
            return node if target.slice.value in _VARIABLES else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
        first = node.value.args[0]
        if o.qualname(node.value.func) in ("os.environ.setdefault", "os.putenv"):
            return node if isinstance(first, ast.Constant) and first.value in _VARIABLES else None
    return None


def before(o: Outline, statement: ast.stmt, runs_scripts: bool = True) -> ast.Call | None:
    """The first call that surely ran before a statement, in its scope, and starts CUDA."""
    chain: list[list[ast.stmt]] = []
    current: ast.AST = statement
    while isinstance(current, ast.stmt):
        block = o.block(current)
        if current in block:
            chain.append(block[: block.index(current)])
        parent = o.parent.get(current)
        if isinstance(parent, (ast.If, ast.While)):
            chain.append([ast.Expr(parent.test)])
        if not isinstance(parent, ast.stmt) or isinstance(
            parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            break
        current = parent
    for block in reversed(chain):
        for earlier in block:
            if sets_variable(o, earlier):
                return None
            for node in always(earlier):
                if isinstance(node, ast.Call) and touches_cuda(o, node):
                    return node
    return None


def sets_variable(o: Outline, statement: ast.stmt) -> bool:
    return any(setting(o, node) is not None for node in inside([statement]))


def always(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that run whenever it does: the test of an `if`, not its branches."""
    if isinstance(statement, (ast.If, ast.While)):
        yield from ast.walk(statement.test)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from ast.walk(statement.iter)
    elif isinstance(statement, (ast.With, ast.Try)):
        for inner in statement.body:
            yield from always(inner)
    elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        stack: list[ast.AST] = [statement]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node, ast.IfExp):
                stack.append(node.test)
            elif isinstance(node, ast.BoolOp):
                stack.append(node.values[0])
            elif not isinstance(node, ast.Lambda):
                stack.extend(reversed(list(ast.iter_child_nodes(node))))


def touches_cuda(o: Outline, call: ast.Call) -> bool:
    """Whether a call starts CUDA: a query of `torch.cuda`, `.cuda()`, a device argument that names it."""
    if o.qualname(call.func) in _TOUCHES:
        return True
    if method(call) == "cuda":
        return True
    named = [k.value for k in call.keywords if k.arg == "device"] + (call.args[:1] if method(call) == "to" else [])
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("cuda") for n in named)


def asks_cuda(o: Outline, call: ast.Call) -> bool:
    """`touches_cuda`, or a helper whose name says that it asks whether CUDA is available."""
    if touches_cuda(o, call):
        return True
    name = call.func.id if isinstance(call.func, ast.Name) else method(call)
    return bool(_QUERY.search(name)) and o.qualname(call.func) not in ("torch.cuda.is_available",)


def is_program(tree: ast.Module) -> bool:
    """Whether a file is run, not imported: it asks for `__name__`, or calls what it defines at its module level."""
    own = {s.name for s in tree.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    for statement in tree.body:
        if asks_name(statement):
            return True
        if isinstance(statement, (ast.Expr, ast.For, ast.While, ast.With)):
            for node in always(statement) if isinstance(statement, ast.Expr) else inside([statement]):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
                    return True
    return False


def at_import(o: Outline) -> Iterator[LateSetting]:
    """CUDA touched by the default of a parameter or by a class body: at import, for a value that may never be used."""
    for function in o.functions:
        if o.function(function) is not None:
            continue  # defined when the outer function runs
        defaults = (*function.args.defaults, *(d for d in function.args.kw_defaults if d is not None))
        for default in defaults:
            touch = first_touch(o, default)
            if touch is not None:
                yield early(o, default, touch, "a default")
    for class_ in o.classes:
        if o.function(class_) is not None:
            continue
        for statement in class_.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                touch = first_touch(o, statement.value)
                if touch is not None:
                    yield early(o, statement.value, touch, "a class body")


def first_touch(o: Outline, node: ast.expr) -> ast.Call | None:
    """The call by which an expression touches CUDA, through one function of the file at most."""
    for child in ast.walk(node):
        if isinstance(child, ast.Lambda):
            return None
        if not isinstance(child, ast.Call):
            continue
        if asks_cuda(o, child):
            return child
        if isinstance(child.func, ast.Name):
            function = o.module_function(child.func.id)
            for inner in own_nodes(function) if function is not None else ():
                if isinstance(inner, ast.Call) and asks_cuda(o, inner) and in_body(o, inner):
                    return inner
    return None


def in_body(o: Outline, call: ast.Call) -> bool:
    return o.function(call) is not None


def early(o: Outline, node: ast.expr, touch: ast.Call, where: str) -> LateSetting:
    origin = o.flow.origin(touch, "CUDA is used here")
    return LateSetting(*o.head(node, origin), "import", o.flow.span(touch), o.flow.text(touch.func), where)
