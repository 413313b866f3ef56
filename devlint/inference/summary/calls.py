"""Calls: to what a callee leads. Torch is known by its data, the project's functions by their summaries; all other calls
cannot be read."""

from __future__ import annotations

import ast

from devlint.inference.objects.heap import ITEM
from devlint.inference.program.definitions import Class, Function
from devlint.inference.summary import (
    autograd,
    builtin_calls,
    moves,
    object_methods,
    own_apply,
    tensor_methods,
    torch_calls,
    unread_calls,
)
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.dispatch import evaluate, evaluates
from devlint.inference.summary.expressions import defined, imported
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.items import attribute, keep_parameters
from devlint.inference.terms.conditions import ALWAYS, both
from devlint.inference.terms.places import place_of_type
from devlint.inference.terms.values import NOTHING, Value, merge, merge_all, part_of


@evaluates(ast.Call)
def _call(frame: Frame, node: ast.Call) -> Value:
    function = node.func
    if isinstance(function, ast.Name):
        return _call_name(frame, node, function)
    if isinstance(function, ast.Attribute):
        return _call_attribute(frame, node, function)
    return call_value(frame, node, evaluate(frame, function), arguments_of(frame, node))


def arguments_of(frame: Frame, node: ast.Call) -> Arguments:
    """The arguments of a call, evaluated in order."""
    positional: list[tuple[ast.expr, Value]] = []
    stars = False
    for each in node.args:
        if isinstance(each, ast.Starred):
            value = evaluate(frame, each.value)
            if value.kind == "tuple" and value.parts is not None:
                positional += [(each.value, part) for part in value.parts]
            else:
                stars = True
                positional.append((each, value))
        else:
            positional.append((each, evaluate(frame, each)))
    named: dict[str, tuple[ast.expr, Value]] = {}
    double = False
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is None:
            double = not _spread(frame, named, keyword.value, value) or double
        else:
            named[keyword.arg] = (keyword.value, value)
    return Arguments(positional, named, stars, double)


def _spread(frame: Frame, named: dict[str, tuple[ast.expr, Value]], node: ast.expr, value: Value) -> bool:
    """The entries of `**value`; whether all are known."""
    if value.kind != "dict" or len(value.objects) != 1:
        named["**"] = (node, value)
        return False
    thing = frame.heap.get(value.objects[0])
    for entry, each in thing.fields.items():
        if entry.startswith("['"):
            named.setdefault(entry[2:-2], (node, frame.heap.settled(each)))
    return ITEM not in thing.fields


def _call_name(frame: Frame, node: ast.Call, function: ast.Name) -> Value:
    value = frame.read(function.id) or defined(frame, function.id)
    if value is None:
        if function.id == "super":
            return Value("other", ref="super")
        return builtin_calls.call(frame, node, function.id, arguments_of(frame, node))
    return call_value(frame, node, value, arguments_of(frame, node))


def _call_attribute(frame: Frame, node: ast.Call, function: ast.Attribute) -> Value:
    if _is_super(function.value):
        return _call_super(frame, node, function.attr)
    name = frame.file.qualified(function)
    if name is not None and _root(function) not in frame.state.names:
        value = imported(frame, name)
        if value.kind != "library" or frame.read(_root(function)) is None:
            return call_value(frame, node, value, arguments_of(frame, node))
    base = evaluate(frame, function.value)
    return call_method(frame, node, base, function, arguments_of(frame, node))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _call_super(frame: Frame, node: ast.Call, name: str) -> Value:
    arguments = arguments_of(frame, node)
    me = frame.state.names.get(frame.self_name or "")
    owner = frame.function.owner if frame.function is not None else None
    if me is None or owner is None:
        return unread_calls.call(frame, node, arguments)
    receiver = frame.receiver or owner
    method = receiver.method_above(owner, name)
    if method is not None:
        return frame.analyser.call(frame, method, me, arguments, node)
    if name == own_apply.NAME:
        return me  # it was moved with what it is a part of
    if name == "__init__" and receiver.is_read:
        if receiver.family == "Optimizer":
            keep_parameters(frame, me, arguments.value(0, "params"))
        return NOTHING
    return object_methods.of_unread_base(frame, node, me, name, arguments, receiver)


def call_value(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    """Call a value."""
    if callee.kind == "function" and isinstance(callee.ref, tuple):
        function, me = callee.ref
        return call_function(frame, node, function, me, arguments)
    if callee.kind == "bound":
        me, name = callee.ref
        if frame.analyser.watch is not None:
            frame.analyser.watch.saw(frame, node.func, callee)
        return _call_bound(frame, node, me, name, arguments)
    if callee.kind == "mover":
        return moves.apply(frame, node, callee, arguments)
    if callee.kind == "record" and callee.ref is not None:
        return torch_calls.make_record(frame, node, callee.ref, arguments)
    if callee.kind == "partial" and callee.ref is not None:
        function, first = callee.ref
        return call_value(frame, node, function, first.followed_by(arguments))
    if callee.kind == "steps":
        return _call_steps(frame, node, callee, arguments)
    if callee.kind == "class" and isinstance(callee.ref, Class):
        return construct(frame, node, callee.ref, arguments)
    if callee.kind == "library" and callee.ref is not None:
        return torch_calls.call(frame, node, callee.ref, arguments, call_value)
    if callee.kind == "library" and callee.parts:
        return _call_either(frame, node, callee, arguments)
    if callee.objects:
        return _call_objects(frame, node, callee, arguments)
    if callee.kind == "unknown":
        return unread_calls.call_unknown(frame, node, callee, arguments)
    return unread_calls.call(frame, node, arguments)


def call_function(frame: Frame, node: ast.Call, function: Function, me: Value | None, arguments: Arguments) -> Value:
    if _is_wrapped(function):
        unread_ = unread_calls.call(frame, node, arguments, me, why="wrapped")
        return _context(frame, function) or unread_
    return frame.analyser.call(frame, function, me, arguments, node)


def _call_bound(frame: Frame, node: ast.Call, me: Value, name: str, arguments: Arguments) -> Value:
    """Call a method that was read before: `move = model.cuda; move()`."""
    if me.kind == "class":
        return autograd.apply(frame, node, me.ref, arguments)
    if moves.is_move(name):
        return moves.move(frame, node, me, name, arguments)
    if name in ("forward", "__call__"):
        return object_methods.call_module(frame, node, me, arguments)
    return object_methods.call_of_module(frame, node, me, name, arguments)


#: Decorators that leave a function what it is [torch, functools, contextlib].
_HARMLESS = ("torch.", "staticmethod", "classmethod", "functools.wraps",
             "abc.abstractmethod", "typing.", "property", "abstractmethod", "numba.", "override")  # fmt: skip


def _is_wrapped(function: Function) -> bool:
    """Whether a decorator that is not known may replace the function."""
    return any(
        not name.startswith(_HARMLESS) and name.rpartition(".")[2] not in _HARMLESS for name in function.decorators()
    )


def _context(frame: Frame, function: Function) -> Value | None:
    """A context that a generator makes: what it yields, where that is an object of a library, and no tensor or module.

    What the generator does before and after its `yield` stays unread.
    """
    if list(function.decorators()) != ["contextlib.contextmanager"]:
        return None
    summary = frame.analyser.summary(function, function.owner)
    given = summary.result.parts if summary is not None else None
    if not given or not isinstance(given[0].ref, str) or given[0].places or given[0].objects:
        return None
    return Value("context", parts=given)


def construct(frame: Frame, node: ast.Call, class_: Class, arguments: Arguments) -> Value:
    """Make an object of a class of the project."""
    return frame.analyser.construct(frame, class_, arguments, node)


def _call_steps(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    """A call of a pipeline: each step gets what the one before gave."""
    value = arguments.value(0)
    if value is None or callee.parts is None:
        return unread_calls.call(frame, node, arguments)
    for each in callee.parts:
        value = call_value(frame, node, each, Arguments([(node.args[0] if node.args else node, value)]))
    return value


def _call_either(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    """A call of one of several functions or types of a library, each under the condition that chose it."""
    found: Value | None = None
    before, outer = ALWAYS, frame.condition
    for each in callee.parts or ():
        place = place_of_type(each.ref)
        chosen = next((at.condition for at in callee.places if place and at.atom == place[0].atom), ALWAYS)
        frame.condition, _ = both(outer, chosen)
        value = call_value(frame, node, each, arguments)
        found = value if found is None else merge(found, value, before, chosen)
        before = chosen if len(callee.parts or ()) == 2 else ALWAYS
    frame.condition = outer
    return found if found is not None else NOTHING


def _call_objects(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    class_ = frame.class_of(callee)
    if class_ is None and len(callee.objects) > 1:
        each = (callee._replace(objects=(identity,)) for identity in callee.objects)
        return merge_all([_call_objects(frame, node, one, arguments) for one in each]) or NOTHING
    if isinstance(class_, Class):
        method = class_.method("forward" if class_.may_be_module and class_.method("__call__") is None else "__call__")
        if method is not None:
            return frame.analyser.call(frame, method, callee, arguments, node)
        if not class_.may_be_module:
            return unread_calls.call(frame, node, arguments, callee)
    if callee.kind == "module":
        return object_methods.call_module(frame, node, callee, arguments)
    return unread_calls.call(frame, node, arguments, callee)


def call_method(frame: Frame, node: ast.Call, base: Value, function: ast.Attribute, arguments: Arguments) -> Value:
    """Call a method of a value."""
    name = function.attr
    own = _own_method(frame, base, name)
    if (
        own is None
        and moves.is_move(name)
        and base.kind not in ("function", "class", "library", "array", "string", "number")
    ):
        return moves.move(frame, node, base, name, arguments)
    if base.is_tensor:
        return tensor_methods.call(frame, node, base, name, arguments)
    if base.kind == "class" and autograd.is_function(base.ref) and name == "apply":
        return autograd.apply(frame, node, base.ref, arguments)
    if base.kind in ("class", "library"):
        return call_value(frame, node, attribute(frame, base, name, function), arguments)
    if base.objects:
        return _call_of_objects(frame, node, base, function, arguments)
    if base.kind == "unknown":
        return _call_of_unknown(frame, node, base, function, arguments)
    return object_methods.call_plain(frame, node, base, name, arguments)


def _own_method(frame: Frame, base: Value, name: str) -> Function | None:
    class_ = frame.class_of(base) if base.objects else None
    return class_.method(name) if isinstance(class_, Class) else None


def _call_of_objects(frame: Frame, node: ast.Call, base: Value, function: ast.Attribute, arguments: Arguments) -> Value:
    name = function.attr
    class_ = frame.class_of(base)
    if isinstance(class_, Class) and class_.method(name) is not None:
        return call_value(frame, node, attribute(frame, base, name, function), arguments)
    stored = frame.heap.field(base.objects[0], "." + name)
    if stored is not None:
        return call_value(frame, node, stored, arguments)
    if isinstance(class_, Class) and (class_.value(name) is not None or class_.class_inside(name) is not None):
        value = attribute(frame, base, name, function)
        if value.kind in ("library", "class"):
            return call_value(frame, node, value, arguments)
    if base.kind in ("list", "dict"):
        return object_methods.call_container(frame, node, base, name, arguments)
    if base.kind == "module" or (isinstance(class_, Class) and class_.is_module):
        if name in ("forward", "__call__"):
            return object_methods.call_module(frame, node, base, arguments)
        return object_methods.call_of_module(frame, node, base, name, arguments)
    if isinstance(class_, Class):
        return object_methods.of_unread_base(frame, node, base, name, arguments, class_)
    if class_ == autograd.CONTEXT:
        return autograd.of_context(frame, base, name, arguments)
    return unread_calls.call(frame, node, arguments, base)


def _call_of_unknown(frame: Frame, node: ast.Call, base: Value, function: ast.Attribute, arguments: Arguments) -> Value:
    name = function.attr
    known = object_methods.call_of_unknown(frame, node, base, name, arguments)
    if known is not None:
        return known
    if base.path is not None:
        return unread_calls.call_unknown(frame, node, part_of(base, "." + name), arguments, base)
    return unread_calls.call(frame, node, arguments, base)
