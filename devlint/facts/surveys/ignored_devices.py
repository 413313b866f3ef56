"""Functions that take a device and choose another one: `def load(path, device=None): return Net().cuda()`.

So do those that leave the choice to a function of the file that takes a device, and do not hand theirs on:
`def cuda(self, device=None): return self.to()`, also where that is the function itself, for what is inside of what it is
given: `def place(batch, device="cpu"): return [place(part) for part in batch]`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from devlint.facts.events import CudaMethod, DeviceLiteral, IgnoredDevice
from devlint.facts.interpreter.flow import Flow
from devlint.facts.surveys.outline import Outline, dotted
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import default_of, named_parameters, parameter_of, positional_names

#: The names of parameters that are devices. Each holds the word "device".
_NAMES = ("device", "torch_device", "run_device")
_HOST = frozenset({"cpu", "meta"})
#: What reads every local variable by its name.
_READS_ALL = frozenset({"locals", "vars", "eval", "exec"})
#: What keeps what it is given as it is: by name, and as an expression.
_CONTAINERS = frozenset({"list", "tuple", "dict", "set", "OrderedDict"})
_HOLDS = (
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Starred,
    ast.IfExp, ast.keyword,
)  # fmt: skip
_STUBS = frozenset({"overload", "abstractmethod"})
#: Names of functions and classes that say themselves which device they are for.
_NAMED = re.compile(r"cuda|gpu|xpu|npu|mps", re.IGNORECASE)


def ignored_devices(o: Outline) -> Iterator[IgnoredDevice]:
    """The first place in each such function that names an accelerator, where the argument is never read."""
    if o.test:
        return
    yield from dropped_within(o)
    takers = {id(f): (f, name) for f in o.functions if (name := ignored(f)) is not None}
    if not takers:
        return
    first: dict[int, ast.expr] = {}
    for node in sorted(named(o), key=lambda node: (node.lineno, node.col_offset)):
        first.setdefault(id(o.function(node)), node)
    for key, (function, name) in takers.items():
        parameter, class_ = parameter_of(function.args, name), o.nearest(function, ast.ClassDef)
        says = _NAMED.search(function.name) or (class_ is not None and _NAMED.search(class_.name))
        if key in first and parameter is not None and not says:
            origin = o.flow.origin(parameter, f"`{name}` is an argument that the function never reads")
            yield IgnoredDevice(*o.head(first[key], origin), function.name, name)
        elif parameter is not None and key not in first:
            call = next(left_to_others(o, function, class_), None)
            if call is not None:
                origin = o.flow.origin(parameter, f"`{name}` is an argument that the function never reads")
                yield IgnoredDevice(*o.head(call, origin), function.name, name)


def any_ignored(tree: ast.Module, flow: Flow, text: str) -> bool:
    """The gate: a function of the file takes a device, and does not read it, or calls itself."""
    if "device" not in text:
        return False
    functions = (each.node for each in flow.scan.functions.values())
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (ignored(node) is not None or any(True for _ in calls_of_itself(node, flow)))
        for node in functions
    )


def calls_of_itself(function: ast.FunctionDef | ast.AsyncFunctionDef, flow: Flow) -> Iterator[tuple[ast.Call, str]]:
    """The calls of a function in itself that leave its device to the default, with the name of the parameter.

    By its name, or on `self`: `super().__init__()` calls another one.
    A default that reads a name, as of the function around, may be the device that was given there.
    """
    if function.decorator_list:
        return
    for call, caller in flow.scan.calls.get(function.name, ()):
        if caller is None or caller.node is not function:
            continue
        if not (isinstance(call.func, ast.Name) or is_self_attribute(call.func)):
            continue
        if (name := lacks_device(function, call)) is not None:
            if isinstance(default_of(function.args, name), ast.Constant):
                yield call, name


def dropped_within(o: Outline) -> Iterator[IgnoredDevice]:
    """The calls of functions in themselves that place what is inside of their argument, and give it no device.

    What they give is returned as it is, or takes the place of an item, as what the function moves to its device is elsewhere.
    A condition about the device may have chosen.
    """
    for function in o.functions:
        bound_to_class = isinstance(o.parent.get(function), ast.ClassDef)
        if not bound_to_class and o.module_function(function.name) is not function:
            continue
        for call, name in calls_of_itself(function, o.flow):
            if not (is_self_attribute(call.func) if bound_to_class else isinstance(call.func, ast.Name)):
                continue
            statement = next((n for n in (call, *o.above(call)) if isinstance(n, ast.stmt)), None)
            kept = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)
            if statement is None or not (kept or isinstance(statement, ast.Return)):
                continue
            if re.search(rf"\b{name}\b", o.flow.text(statement)) or not is_whole(o, call, statement):
                continue
            if not gives_moved(function, name) or has_condition(function, name):
                continue
            parameter = parameter_of(function.args, name)
            if parameter is not None:
                origin = o.flow.origin(parameter, f"`{name}` is an argument")
                yield IgnoredDevice(*o.head(call, origin), function.name, name, within=True)


def is_whole(o: Outline, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether what a call gives of what is inside of an argument ends up, as it is, in what a statement gives or keeps."""
    if not call.args or isinstance(call.args[0], ast.Constant):
        return False
    inner: ast.AST = call
    for around in o.above(call):
        if around is statement:
            return True
        if isinstance(around, ast.Call) and inner is not around.func:
            if last_name(around.func) not in _CONTAINERS and not isinstance(
                around.func, ast.Call
            ):  # `type(batch)(...)`
                return False
        elif not isinstance(around, _HOLDS):
            return False
        inner = around
    return False


def gives_moved(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a function returns what it moves to its device, or puts that in the place of an item."""
    for node in walk(function):
        kept = isinstance(node, ast.Return) or (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        )
        value = node.value if kept and isinstance(node, (ast.Return, ast.Assign)) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "cuda"):
            if any(isinstance(part, ast.Name) and part.id == name for part in walk(value)):
                return True
    return False


def has_condition(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a condition of a function is about its device, other than whether it is None."""
    tests = [node.test for node in walk(function) if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert))]
    for test in tests:
        plain = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        if not plain and any(isinstance(part, ast.Name) and part.id == name for part in walk(test)):
            return True
    return False


def ignored(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The argument for a device that a function does not read."""
    names = {a.arg for a in named_parameters(function.args)}
    if names.isdisjoint(_NAMES):
        return None
    taken = [name for name in _NAMES if name in names]
    if any(last_name(decorator) in _STUBS for decorator in function.decorator_list):
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
        if called is None or called is function:
            continue
        several = implementations(o, called)
        if several is None or lacks_device(called, call, several) is None:
            continue
        yield call


def implementations(
    o: Outline, called: ast.FunctionDef | ast.AsyncFunctionDef
) -> list[ast.FunctionDef | ast.AsyncFunctionDef] | None:
    """What runs for a call of a function: itself, or those that `functools.singledispatch` chooses from; None if not known."""
    if not called.decorator_list:
        return [called]
    if [last_name(decorator) for decorator in called.decorator_list] != ["singledispatch"]:
        return None
    registered = []
    for function in o.functions:
        for decorator in function.decorator_list:
            register = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(register, ast.Attribute) and dotted(register) == f"{called.name}.register":
                registered.append(function)
    return [called, *registered]


def own_calls(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    """The calls in a function, in the order of the text."""
    found = [node for statement in function.body for node in walk(statement) if isinstance(node, ast.Call)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def lacks_device(
    called: ast.FunctionDef | ast.AsyncFunctionDef,
    call: ast.Call,
    several: Sequence[ast.FunctionDef | ast.AsyncFunctionDef] = (),
) -> str | None:
    """The parameter for a device that a function reads and a call leaves to its default; None where there is no such one.

    `several`: what may run for the call, one of which reads it.
    """
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    if all(ignored(each) is not None for each in several or (called,)):
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
