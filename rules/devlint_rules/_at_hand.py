"""The device of a tensor or module that a function has at hand, where it needs one, and a name for it where it repeats."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache

from devlint.api import (
    HOME,
    ApiCall,
    CudaMethod,
    DeviceLiteral,
    Event,
    Facts,
    Move,
    RunDeviceNeed,
    Value,
)

from ._given import given_device
from ._run_device import guard_in
from ._shared import File, is_none, parsed, span_of
from ._switches import defaults
from ._taken import innermost, is_bound, origin, shares_memory, sized_like, taken_from
from ._uses import held, is_named, parents, place_of, uses, wants_device

_RECEIVER = re.compile(
    r"\b([A-Za-z_]\w*)(?:\.\w+|\[[^\[\]]*\])*\.(?:to|type|cuda)\(\s*(?:device\s*=\s*)?(?:\w+\.device\()?\Z"
)

_TRAINS = re.compile(r"\bDataLoader\(|\.backward\(|\.step\(|\bin \w*loader\b")
#: Methods of a tensor that draw its values in place [torch/_tensor_docs.py].
_DRAW = frozenset(
    {"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "geometric_", "log_normal_", "cauchy_"}
)
#: As often as this a function writes the same device, before it gets a name.
_OFTEN = 3


def wants_new(facts: Facts) -> bool:
    """Whether a place that needs a device has none in scope and none at hand: the file then has a new one, everywhere."""
    return _wants_new(File(facts))


@lru_cache(maxsize=1)
def _wants_new(file: File) -> bool:
    return any(at_hand(event, file.facts) is None for event in _without(file))


@lru_cache(maxsize=1)
def _without(file: File) -> tuple[Event, ...]:
    """The places that need a device and have none in scope."""
    facts = file.facts
    calls = (
        e for e in facts.events if isinstance(e, ApiCall) and wants_device(e, facts) and guard_in(e, facts) is None
    )
    named = (use for use in uses(facts) if use.run_device is None and not is_named(use, facts.text))
    return tuple(event for event in (*named, *calls) if not _has_place(event, facts))


def _has_place(event: Event, facts: Facts) -> bool:
    """Whether the file says already where something goes: by a name, by the argument of `cuda`, or as a part of a module."""
    if isinstance(event, CudaMethod) and given_device(event, facts) is not None:
        return True
    return held(event, facts) is not None or buffer_of(event, facts) is not None


def near(event: Event, facts: Facts) -> str | None:
    """The device at hand; one argument's for the whole function, where some place of it follows an argument.

    All that the function puts on the card is in one place.
    """
    own = at_hand(event, facts)
    head = head_of(event, facts)
    if own is None or head is None:
        return own
    given = {each.arg for each in ast.walk(head.args) if isinstance(each, ast.arg)}
    found = [own, *(at_hand(other, facts) or "" for other in _beside(event, facts))]
    return next((device for device in found if device.removesuffix(".device") in given), own)


def _beside(event: Event, facts: Facts) -> list[Event]:
    """The places in the function of an event that need a device and have none in scope."""
    return [
        other for other in _without(File(facts)) if getattr(other, "function", None) == getattr(event, "function", "")
    ]


def local_name(device: str, event: Event, facts: Facts) -> RunDeviceNeed | None:
    """The name for a device that the function of an event writes often; None where the function has such a name.

    The device is then read at the start: of a parameter that is not bound again before, or of the module.
    """
    function, row = head_of(event, facts), getattr(event.node, "lineno", 0)
    if function is None:
        return None
    same = [other for other in _beside(event, facts) if near(other, facts) == device]
    first = min((getattr(other.node, "lineno", 0) for other in same), default=row)
    owner = device.removesuffix(".device")
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    steady = owner in given and not is_bound(owner, function, function.lineno, first)
    names = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)} | given
    if len(same) < _OFTEN or not (steady or owner == "next(self.parameters())") or "device" in names:
        return None
    return RunDeviceNeed("device", device, inside=span_of(function, facts.text))


def buffer_of(event: Event, facts: Facts) -> str | None:
    """The name of an attribute that can be a buffer of its module: `self.table = make().cuda()` in `__init__`.

    Not of a tensor with a gradient, which the module's state does not have, nor of one that shares its memory.
    """
    if not isinstance(event, CudaMethod) or not event.function.endswith(".__init__"):
        return None
    owner, moved = event.scope.get("self"), event.receiver
    if owner is None or owner.kind != "module" or not moved.value.is_tensor or moved.value.kind == "parameter":
        return None
    around = parents(facts.text).get(place_of(event.node))
    target = around.targets[0] if isinstance(around, ast.Assign) and len(around.targets) == 1 else None
    gradient = (each for each in ast.walk(moved.node) if isinstance(each, ast.keyword) and each.arg == "requires_grad")
    if any(isinstance(each.value, ast.Constant) and each.value.value is True for each in gradient):
        return None
    if shares_memory(moved.node) or not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
        return None
    return None if _is_drawn(target.attr, event, facts) else target.attr


def _is_drawn(name: str, event: CudaMethod, facts: Facts) -> bool:
    """Whether the class draws the values of an attribute in place, `nn.init.normal_(self.w)`: the card's generator does.

    A buffer is still on the CPU when the object is made, and another generator would draw other values.
    """
    tree, path = parsed(facts.text), f"self.{name}"
    row = getattr(event.node, "lineno", 0)
    for class_ in ast.walk(tree) if tree is not None else ():
        if not isinstance(class_, ast.ClassDef) or not class_.lineno <= row <= (class_.end_lineno or 0):
            continue
        for node in ast.walk(class_):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            drawn = node.args[:1] if _is_init(node.func, facts) else [node.func.value] * (node.func.attr in _DRAW)
            if any(ast.unparse(each).removesuffix(".data") == path for each in drawn):
                return True
    return False


def _is_init(function: ast.Attribute, facts: Facts) -> bool:
    """Whether a function is one of `torch.nn.init` that works in place."""
    first, _, rest = ast.unparse(function).partition(".")
    return function.attr.endswith("_") and f"{facts.imports.get(first, first)}.{rest}".startswith("torch.nn.init.")


def at_hand(event: Event, facts: Facts) -> str | None:
    """The device of the tensor that it meets first, of an argument that is one of the caller's, or of the own module.

    Arguments that the function itself moves to the accelerator are the caller's on the host, and say nothing. The others
    say nothing of these either, unless both meet: the caller may have all of them on the host. Nor do the arguments of a
    function that trains, unless what moves was made in it.
    """
    met = event.partner if isinstance(event, CudaMethod | DeviceLiteral | ApiCall) else None
    if met is None and isinstance(event, CudaMethod):
        met = taken_from(event, facts) or sized_like(event, facts)
    if met is not None:
        return f"{origin(met, event, facts)}.device"
    head = head_of(event, facts)
    if head is None:
        return None
    receiver = event.receiver.value if isinstance(event, CudaMethod) else None
    made = receiver is None or (receiver.is_tensor and bool(receiver.made))
    if isinstance(event, CudaMethod) and receiver is not None and receiver.is_tensor and receiver.device == HOME:
        if not made and not _is_operand(event, facts):
            return None  # it is where the caller's tensors are already, and moves to where the module is
        made = True
    is_module = receiver is not None and receiver.kind == "module"
    arguments = (*head.args.posonlyargs, *head.args.args, *head.args.kwonlyargs)
    given = [a.arg for a in arguments]
    containers = {a.arg for a in arguments if _is_container(a.annotation)}
    is_given = (receiver is None or not made) and _moved(event, facts) in {*given} - {"self"}
    asks = not is_module and not is_given and (made or _TRAINS.search(ast.unparse(head)) is None)
    moved = {_moved(other, facts) for other in facts.events if _same_function(other, event)} - {None}
    optional = {name for name, default in defaults(head.args) if is_none(default)}
    for name in given if asks else ():
        value = event.scope.get(name)
        if name in moved | optional | containers or _is_unpacked(name, head.name, facts.text):
            continue
        if value is not None and value.is_tensor and value.device == HOME:
            return f"{name}.device"
    scope = _scope_at_first(event, facts)
    owner = scope.get("self")
    if owner is None or owner.kind != "module" or owner.device != HOME or given[:1] != ["self"]:
        return None
    held = any(
        path.startswith("self.") and value.kind in ("module", "parameter") and value.device == HOME
        for path, value in scope.items()
    )
    if not held or moved or _is_part_of_init(head.name, facts.text):
        return None
    return "next(self.parameters()).device"


def _is_container(annotation: ast.expr | None) -> bool:
    """Whether an annotation says that an argument holds tensors, `Dict[str, Tensor]`: it has no device itself."""
    outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return outer is not None and ast.unparse(outer).rpartition(".")[2] in _CONTAINERS


#: Containers by their names in annotations [Python's library reference, "typing", "collections.abc"].
_CONTAINERS = frozenset(
    {
        "dict",
        "Dict",
        "Mapping",
        "MutableMapping",
        "list",
        "List",
        "tuple",
        "Tuple",
        "set",
        "Set",
        "Sequence",
        "Iterable",
    }
)


def _scope_at_first(event: Event, facts: Facts) -> Mapping[str, Value]:
    """What is known where the function first names the card: what it moves itself does not say where the module is."""
    own = [other for other in uses(facts) if other.function == event.function and event.function]
    return min(own, key=lambda other: other.span.start).scope if own else event.scope


@lru_cache(maxsize=64)
def _is_unpacked(name: str, function: str, text: str) -> bool:
    """Whether a function of that name unpacks an argument, `a, b = given`: it may be a tuple, which has no device."""
    tree = parsed(text)
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple | ast.List)
        and ast.unparse(node.value) == name
        for owner in (ast.walk(tree) if tree is not None else ())
        if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef) and owner.name == function
        for node in ast.walk(owner)
    )


def _is_operand(event: CudaMethod, facts: Facts) -> bool:
    """Whether what moves is computed in place from other tensors, for a function of torch or an operator."""
    if not isinstance(event.receiver.node, ast.Compare | ast.BinOp) or not isinstance(event.node, ast.expr):
        return False
    around = parents(facts.text).get(place_of(event.node))
    if not isinstance(around, ast.Call):
        return isinstance(around, ast.BinOp)
    first, _, rest = ast.unparse(around.func).partition(".")
    return f"{facts.imports.get(first, first)}.{rest}".startswith("torch.")


def _same_function(other: Event, event: Event) -> bool:
    return isinstance(other, CudaMethod | DeviceLiteral | ApiCall | Move) and other.function == event.function


def _moved(event: Event, facts: Facts) -> str | None:
    """The name that a move to an accelerator reads: `x` of `x.cuda()`, of `Variable(x[0]).cuda()`, of `x.to("cuda")`."""
    if isinstance(event, DeviceLiteral | ApiCall):
        receiver = _RECEIVER.search(facts.text[max(0, event.span.start - 120) : event.span.start])
        return receiver[1] if receiver is not None else None
    node: ast.AST | None = event.receiver.node if isinstance(event, CudaMethod) else None
    if isinstance(event, Move) and event.method == "type" and isinstance(event.node, ast.Call):
        node = event.node.func
    while node is not None:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "Variable":
            node = node.func.value
        elif isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        else:
            break
    return node.id if isinstance(node, ast.Name) and node.id not in facts.imports else None


def head_of(event: Event, facts: Facts) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function around an event; None for a lambda, and outside of functions."""
    tree, row = parsed(facts.text), getattr(event.node, "lineno", 0)
    function = innermost(tree, row) if tree is not None else None
    return function if function is not None and function.name == event.function.rpartition(".")[2] else None


def _is_part_of_init(name: str, text: str) -> bool:
    """Whether a method is `__init__` or is called there, before the module is moved."""
    if name == "__init__":
        return True
    inits = re.findall(r"\bdef __init__\(.*?(?=\n\s*(?:async )?def |\nclass |\Z)", text, re.DOTALL)
    return any(re.search(rf"\bself\.{name}\b", body) is not None for body in inits)
