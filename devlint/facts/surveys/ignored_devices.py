"""Functions that take a device and choose another one: `def load(path, device=None): return Net().cuda()`.

So do those that leave the choice to a function of the file that takes a device, and do not hand theirs on:
`def cuda(self, device=None): return self.to()`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import CudaMethod, DeviceLiteral, IgnoredDevice
from devlint.facts.interpreter.flow import Flow
from devlint.facts.surveys.outline import Outline
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import default_of, named_parameters, parameter_of, positional_names

#: The names of parameters that are devices.
_NAMES = ("device", "torch_device", "run_device")
_HOST = frozenset({"cpu", "meta"})
#: What reads every local variable by its name.
_READS_ALL = frozenset({"locals", "vars", "eval", "exec"})
_STUBS = frozenset({"overload", "abstractmethod"})
#: Names of functions and classes that say themselves which device they are for.
_NAMED = re.compile(r"cuda|gpu|xpu|npu|mps", re.IGNORECASE)


def ignored_devices(o: Outline) -> Iterator[IgnoredDevice]:
    """The first place in each such function that names an accelerator, where the argument is never read."""
    takers = {id(f): (f, name) for f in o.functions if (name := ignored(f)) is not None}
    if o.test or not takers:
        return
    first: dict[int, ast.expr] = {}
    for node in sorted(named(o), key=lambda node: (node.lineno, node.col_offset)):
        first.setdefault(id(o.function(node)), node)
    for key, (function, name) in takers.items():
        parameter, class_ = parameter_of(function.args, name), o.nearest(function, ast.ClassDef)
        says = _NAMED.search(function.name) or (class_ is not None and _NAMED.search(class_.name))
        if key in first and parameter is not None and not says:
            origin = o.flow.origin(parameter, f"`{name}` is an argument, which nothing in the function reads")
            yield IgnoredDevice(*o.head(first[key], origin), function.name, name)
        elif parameter is not None and key not in first:
            call = next(left_to_others(o, function, class_), None)
            if call is not None:
                origin = o.flow.origin(parameter, f"`{name}` is an argument, which nothing in the function reads")
                yield IgnoredDevice(*o.head(call, origin), function.name, name)


def any_ignored(tree: ast.Module, flow: Flow, text: str) -> bool:
    """The gate: a function of the file takes a device and does not read it."""
    functions = (each.node for each in flow.scan.functions.values())
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ignored(node) is not None for node in functions
    )


def ignored(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The argument for a device that a function does not read."""
    names = {a.arg for a in named_parameters(function.args)}
    taken = [name for name in _NAMES if name in names]
    if not taken or any(last_name(decorator) in _STUBS for decorator in function.decorator_list):
        return None
    return None if any(reads(function, name) for name in taken) else taken[0]


def left_to_others(
    o: Outline, function: ast.FunctionDef | ast.AsyncFunctionDef, class_: ast.ClassDef | None
) -> Iterator[ast.Call]:
    """The calls in a function of methods of its object, and of functions of the module, that take a device and get none."""
    methods = (
        [] if class_ is None else [f for f in class_.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
    )
    for call in own_calls(function):
        called: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        if isinstance(call.func, ast.Attribute) and is_self_attribute(call.func):
            called = next((f for f in methods if f.name == call.func.attr), None)
        elif isinstance(call.func, ast.Name):
            called = o.module_function(call.func.id)
        if called is None or called is function or called.decorator_list or lacks_device(called, call) is None:
            continue
        yield call


def own_calls(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    """The calls in a function, in the order of the text."""
    found = [node for statement in function.body for node in walk(statement) if isinstance(node, ast.Call)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def lacks_device(called: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> str | None:
    """The parameter for a device that a function reads and a call leaves to its default; None where there is no such one."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    if ignored(called) is not None:
        return None
    bound = int(isinstance(call.func, ast.Attribute))
    for name in _NAMES:
        default = default_of(called.args, name)
        if default is None or any(k.arg in _NAMES for k in call.keywords):
            continue
        places = positional_names(called.args)
        if name not in places or places.index(name) >= len(call.args) + bound:
            return name
    return None


def named(o: Outline) -> Iterator[ast.expr]:
    """Where a file puts something on an accelerator that it names."""
    elsewhere = set()
    for event in o.flow.events.values():
        if isinstance(event, CudaMethod) and event.argument is None and isinstance(event.node, ast.expr):
            yield event.node
        elif isinstance(event, DeviceLiteral) and isinstance(event.node, ast.expr):
            if event.role in ("autocast", "default"):
                elsewhere.add(event.span)
            elif event.type not in _HOST and not is_asked(o, event.node):
                yield event.node
    for span, (node, _, _) in o.flow.literals.items():  # `"cuda" if torch.cuda.is_available() else "cpu"`
        text, outer = getattr(node, "value", None), o.parent.get(node)
        chosen = isinstance(outer, (ast.IfExp, ast.Assign, ast.AnnAssign)) and not is_asked(o, node)
        if chosen and span not in elsewhere and isinstance(text, str) and text.partition(":")[0] not in _HOST:
            yield node


def is_asked(o: Outline, node: ast.AST) -> bool:
    """Whether a device is only compared with, told about, or given to a function that manages it."""
    for above in o.above(node):
        if isinstance(above, (ast.Compare, ast.Assert, ast.Raise, ast.Dict)):
            return True
        if isinstance(above, ast.Call) and (o.qualname(above.func) or "").startswith("torch.cuda."):
            return True
        if isinstance(above, ast.stmt):
            return False
    return False


def reads(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a function, or one inside it, reads its argument before it gives the name another value, or may do so."""
    for statement in function.body:
        for node in walk(statement):
            if isinstance(node, ast.Name) and (node.id in _READS_ALL or (node.id == name and is_read(node))):
                return True
        if any(isinstance(node, ast.Name) and node.id == name for node in bound(statement)):
            return False
    return False


def is_read(node: ast.Name) -> bool:
    """Whether a name is read, or given up on purpose: `del device`."""
    return not isinstance(node.ctx, ast.Store)


def bound(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement binds before it goes on."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from walk(target)
    elif isinstance(statement, (ast.AnnAssign, ast.For)):
        yield from walk(statement.target)
