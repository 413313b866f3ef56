"""Facts about a card that gets lost: something goes to the current card, or to the first one, where another may be meant.

    eye = torch.eye(3).type(a.type())       # the type of a tensor names no card
    cost = cost.cuda()                      # in a function for CUDA, beside an argument that is on some card
    card = 0 if str(device) != "cpu" else -1
    other = other.to(x.device.type)         # "cuda", of whatever card
    torch.cuda.set_device(args.gpu)         # and yet `torch.device("cuda:0" ...)` in the same function

On a machine with one card nothing shows it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import CardLost, CudaMethod, DeviceLiteral
from devlint.facts.surveys.outline import Outline, dotted, method, own_nodes
from devlint.facts.text.method_names import OFF_HOST_TENSOR, PLACES
from devlint.facts.text.references import last_name

_DEVICE = re.compile(r"(?:\A|_)device\Z")
_SETS_CARD = frozenset({"torch.cuda.set_device", "torch.accelerator.set_device_index"})


def lost_cards(o: Outline) -> Iterator[CardLost]:
    """The places of a file where a card gets lost."""
    yield from by_type(o)
    yield from by_name(o)
    yield from as_first(o)
    yield from beside_current(o)
    yield from as_kind(o)


def by_type(o: Outline) -> Iterator[CardLost]:
    """`x.type(y.type())`, and `kind = y.type()` before it: `y.type()` is "torch.cuda.FloatTensor", of whatever card."""
    for call in o.calls:
        if method(call) != "type" or len(call.args) != 1 or call.keywords or not isinstance(call.func, ast.Attribute):
            continue
        given = call.args[0]
        if isinstance(given, ast.Name):
            bound = o.assignments(given.id, call)
            given = bound[0] if len(bound) == 1 and bound[0] is not None else given
        if not isinstance(given, ast.Call) or method(given) != "type" or given.args or given.keywords:
            continue
        assert isinstance(given.func, ast.Attribute)
        other, receiver = dotted(given.func.value), call.func.value
        if other is None or has_its_place(o, receiver) or is_placed_then(o, call):
            continue
        bound = o.assignments(other, call)
        if bound and all(value is not None and not has_its_place(o, value) for value in bound):
            continue  # on the CPU itself
        yield CardLost(*o.head(call), "type", other, o.flow.span(receiver), given is call.args[0])


def is_placed_then(o: Outline, node: ast.AST) -> bool:
    """Whether the same expression goes on to move what it makes: `torch.sqrt(x.type(y.type())).to(y.device)`."""
    for above in o.above(node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.Attribute) and above.attr in OFF_HOST_TENSOR:
            return True
    return False


def has_its_place(o: Outline, node: ast.expr) -> bool:
    """Whether what is converted may be somewhere already: anything but what is made by a call of torch right there."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if (o.qualname(node.func) or "").startswith("torch."):
            return any(k.arg == "device" or k.arg is None for k in node.keywords) or not is_factory(node)
        node = node.func.value
    return True


def is_factory(call: ast.Call) -> bool:
    """Whether a call of torch makes a tensor of sizes and numbers."""
    return last_name(call.func) in (
        "eye", "zeros", "ones", "full", "empty", "arange", "linspace", "rand", "randn", "randint", "randperm", "tensor",
        "from_numpy", "Tensor", "FloatTensor",
    )  # fmt: skip


def by_name(o: Outline) -> Iterator[CardLost]:
    """`.cuda()` of what a function for CUDA makes, beside a tensor that it is given."""
    moved_in: dict[ast.AST, set[str | None]] = {}
    for event in list(o.flow.events.values()):
        if (
            not isinstance(event, CudaMethod)
            or event.type != "cuda"
            or event.argument is not None
            or event.index is not None
        ):
            continue
        function = o.function(event.node)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or "cuda" not in function.name.split("_"):
            continue
        own, made = o.flow.span(function), event.receiver.value.made
        if not made or not all(own.start <= creation.span.start < own.end for creation in made):
            continue
        evidence = o.flow.evidence.get(id(function))
        given = [a.arg for a in function.args.args if evidence is not None and a.arg in evidence.tensors]
        if function not in moved_in:
            nodes = (n for n in own_nodes(function) if isinstance(n, ast.Attribute) and n.attr in PLACES)
            moved_in[function] = {dotted(node.value) for node in nodes}
        moved = moved_in[function]
        other = next((name for name in given if name not in moved), None)
        if other is not None:
            yield CardLost(*o.head(event.node), "method", other, event.receiver.span, True)


def as_first(o: Outline) -> Iterator[CardLost]:
    """`0 if str(device) != "cpu" else -1`: each card becomes the first."""
    for node in o.parent:
        if not isinstance(node, ast.IfExp) or not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
            continue
        arms = tuple(number(arm) for arm in (node.body, node.orelse))
        word = node.test.comparators[0]
        if set(arms) != {0, -1} or not isinstance(word, ast.Constant):
            continue
        device = device_in(node.test.left)
        asks_cpu = word.value == "cpu" and isinstance(node.test.ops[0], ast.NotEq if arms[0] == 0 else ast.Eq)
        asks_type = word.value == "cuda" and isinstance(node.test.ops[0], ast.Eq) and arms[0] == 0
        asks_type = asks_type and isinstance(node.test.left, ast.Attribute) and node.test.left.attr == "type"
        if device is not None and (asks_cpu or asks_type):
            yield CardLost(*o.head(node), "zero", o.flow.text(device), o.flow.span(device), True)


def number(node: ast.expr) -> int | None:
    """The number that a literal stands for."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def device_in(node: ast.expr) -> ast.expr | None:
    """The device in `str(device)` or `device.type`; a text that is compared as it is names no card."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        node = node.args[0]
    elif isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    else:
        return None
    return node if dotted(node) is not None and _DEVICE.search(last_name(node)) is not None else None


def beside_current(o: Outline) -> Iterator[CardLost]:
    """`torch.device("cuda:0" if ... else "cpu")` in a function that makes another card the current one."""
    setting: dict[ast.AST, ast.Call] = {}
    for call in o.calls:
        if o.qualname(call.func) in _SETS_CARD and len(call.args) == 1 and not isinstance(call.args[0], ast.Constant):
            if "device" not in last_name(call.args[0]):  # what is made current may be that very device
                setting.setdefault(o.scope(call), call)
    if not setting or "VISIBLE_DEVICES" in o.flow.source.text:
        return
    for event in list(o.flow.events.values()):
        if not isinstance(event, DeviceLiteral) or event.index != 0 or event.type != "cuda" or event.role != "fallback":
            continue
        chosen = setting.get(o.scope(event.node))
        if chosen is not None and not are_exclusive(o, chosen, event.node):
            origin = o.flow.origin(chosen, "another GPU becomes the current GPU here")
            yield CardLost(*o.head(event.node, origin), "first", o.flow.text(chosen.args[0]), event.span, True)


def as_kind(o: Outline) -> Iterator[CardLost]:
    """`x.to(y.device.type)`, `torch.zeros(3, device=y.device.type)`, and a property `device` that returns the type alone."""
    for call in o.calls:
        given = next((k.value for k in call.keywords if k.arg == "device"), None)
        if given is not None and (o.qualname(call.func) or "").startswith("torch.") and is_factory(call):
            yield from lost_kind(o, given)
        elif method(call) == "to" and call.args:
            yield from lost_kind(o, call.args[0])
    for function in o.functions:
        if function.name == "device" and any(last_name(mark) == "property" for mark in function.decorator_list):
            for node in own_nodes(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from lost_kind(o, node.value, direct=False)


def lost_kind(o: Outline, node: ast.expr, direct: bool = True) -> Iterator[CardLost]:
    """The card of `x.device.type`, where a device is wanted. `direct`: right there, not by who reads what is returned."""
    device = node.value if isinstance(node, ast.Attribute) and node.attr == "type" else None
    if isinstance(device, ast.Attribute) and device.attr == "device":
        yield CardLost(*o.head(node), "kind", o.flow.text(device), o.flow.span(device), direct)


def are_exclusive(o: Outline, a: ast.AST, b: ast.AST) -> bool:
    """Whether two places stand in different branches of one condition."""
    sides: dict[ast.AST, ast.AST] = {}
    child = a
    for above in o.above(a):
        sides[above] = child
        child = above
    child = b
    for above in o.above(b):
        if isinstance(above, ast.If) and above in sides:
            first, second = (side in above.orelse for side in (sides[above], child))
            return first != second and sides[above] is not above.test and child is not above.test
        if above in sides and not isinstance(above, ast.stmt):
            return False
        child = above
    return False
