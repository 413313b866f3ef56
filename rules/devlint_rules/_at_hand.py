"""How the device of the run is written where a fix needs one: what is in scope, what is at hand, else a new name."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
    Site,
    Value,
)

from ._conversion import held, is_safe, is_text, new_device, parents, place_of, uses
from ._given import is_index
from ._shared import parsed
from ._taken import sized_like, taken_from

_RECEIVER = re.compile(
    r"\b([A-Za-z_]\w*)(?:\.\w+|\[[^\[\]]*\])*\.(?:to|type|cuda)\(\s*(?:device\s*=\s*)?(?:\w+\.device\()?\Z"
)

_TRAINS = re.compile(r"\bDataLoader\(|\.backward\(|\.step\(|\bin \w*loader\b")
_NEXT = re.compile(r"^(\t| {2}| {4})?(async )?(def|class) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RunDevice:
    """An expression for the device of the run, and what a fix needs so that it is defined. `is_text`: it is a new text."""

    text: str
    needs: tuple[RunDeviceNeed, ...] = ()
    is_text: bool = False


def run_device(in_scope: str | None, site: Site, event: Event | None = None) -> RunDevice | None:
    """The run's device: the expression that is in scope, else that of a tensor or module at hand, else a new name.

    `event`: what is to be put there; without it nothing at hand is asked. A program whose conversion is safe has the new name
    everywhere. None where no device can be chosen with the imports, see `new_device`.
    """
    row = getattr(event.node, "lineno", 0) if event is not None else 0
    if in_scope is not None and not is_index(in_scope, row, site.facts):
        return RunDevice(in_scope)
    if event is not None and (known := held(event, site.facts)) is not None:
        return RunDevice(known)
    if event is not None and (own := _of_class(event, site.facts)) is not None:
        return RunDevice(own)
    type = event.type if isinstance(event, CudaMethod | DeviceLiteral) else "cuda"
    near = at_hand(event, site.facts) if event is not None and not is_safe(type, site.facts) else None
    need = new_device(type, site.facts)
    if near is not None and event is not None and (need is None or not _needs_new(event, site.facts)):
        return RunDevice(near)
    return None if need is None else RunDevice(need.name, (need,), is_text(site.facts))


def _needs_new(event: Event, facts: Facts) -> bool:
    """Whether another place in the function has only the new name: one name then serves the whole function.

    What meets a tensor of the caller's follows that tensor wherever it is.
    """
    if not isinstance(event, CudaMethod | DeviceLiteral):
        return False
    partner = event.partner or (sized_like(event, facts) if isinstance(event, CudaMethod) else None)
    if not (partner or "").isidentifier():
        return False
    head = head_of(event, facts)
    given = (
        {a.arg for a in (*head.args.posonlyargs, *head.args.args, *head.args.kwonlyargs)} if head is not None else set()
    )
    if partner in given:
        return False
    return any(
        other.function == event.function and other.run_device is None and at_hand(other, facts) is None
        for other in uses(facts)
    )


def _of_class(event: Event, facts: Facts) -> str | None:
    """`self.device` in a method of a class that places things there by it: `x.to(self.device)`, `device=self.device`.

    Not where the object is made: it may not have it yet.
    """
    tree = parsed(facts.text)
    row = event.node.lineno if isinstance(event.node, ast.expr | ast.stmt) else 0
    for class_ in _classes(tree) if tree is not None and row else ():
        if not class_.lineno <= row <= (class_.end_lineno or 0):
            continue
        method = next(
            (m for m in class_.body if isinstance(m, ast.FunctionDef) and m.lineno <= row <= (m.end_lineno or 0)), None
        )
        if method is None or method.name == "__init__" or [a.arg for a in method.args.args][:1] != ["self"]:
            continue
        if _places_by_self(class_):
            return "self.device"
    return None


@lru_cache(maxsize=16)
def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]


@lru_cache(maxsize=64)
def _places_by_self(class_: ast.ClassDef) -> bool:
    """Whether some code of a class puts a thing where `self.device` is."""
    return any(map(_is_placed_by_self, ast.walk(class_)))


def _is_placed_by_self(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    moves = isinstance(node.func, ast.Attribute) and node.func.attr == "to"
    given = [*(node.args[:1] if moves else ()), *(k.value for k in node.keywords if k.arg == "device")]
    return any(isinstance(each, ast.Attribute) and ast.unparse(each) == "self.device" for each in given)


def at_hand(event: Event, facts: Facts) -> str | None:
    """The device of the tensor that it meets first, of an argument that is one of the caller's, or of the own module.

    Arguments that the function itself moves to the accelerator are the caller's on the host, and say nothing. The others
    say nothing of these either, unless both meet: the caller may have all of them on the host. Nor do the arguments of a
    function that trains, unless what moves was made in it.
    """
    if isinstance(event, CudaMethod | DeviceLiteral | ApiCall) and event.partner is not None:
        return f"{event.partner}.device"
    if isinstance(event, CudaMethod) and (tensor := taken_from(event, facts) or sized_like(event, facts)) is not None:
        return f"{tensor}.device"
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
    given = [a.arg for a in (*head.args.posonlyargs, *head.args.args, *head.args.kwonlyargs)]
    is_given = (receiver is None or not made) and _moved(event, facts) in {*given} - {"self"}
    asks = not is_module and not is_given and (made or _TRAINS.search(_body_of(event, facts)) is None)
    moved = {_moved(other, facts) for other in facts.events if _same_function(other, event)} - {None}
    for name in given if asks else ():
        value = event.scope.get(name)
        if name in moved or _is_unpacked(name, head.name, facts.text):
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


def head_of(event: Event, facts: Facts) -> ast.FunctionDef | None:
    """The header of the function around an event, with an empty body."""
    name = event.function.rpartition(".")[2]
    if not name.isidentifier():
        return None
    start = _start_of(name, event, facts)
    return _header(facts.text, start) if start >= 0 else None


def _start_of(name: str, event: Event, facts: Facts) -> int:
    starts = [m.start() for m in re.finditer(rf"\bdef {name}\s*\(", facts.text) if m.start() < event.span.start]
    return starts[-1] if starts else -1


def _body_of(event: Event, facts: Facts) -> str:
    """The text of the function around an event, up to the next one at module level or in a class."""
    start = max(0, _start_of(event.function.rpartition(".")[2], event, facts))
    end = _NEXT.search(facts.text, event.span.end)
    return facts.text[start : end.start() if end is not None else len(facts.text)]


@lru_cache(maxsize=64)
def _header(text: str, start: int) -> ast.FunctionDef | None:
    end = start
    for _ in range(20):  # a header may have several colons
        end = text.find(":", end) + 1
        if not end:
            return None
        try:
            (function,) = ast.parse(text[start:end] + " pass").body
        except (SyntaxError, ValueError):
            continue
        return function if isinstance(function, ast.FunctionDef) else None
    return None


def _is_part_of_init(name: str, text: str) -> bool:
    """Whether a method is `__init__` or is called there, before the module is moved."""
    if name == "__init__":
        return True
    inits = re.findall(r"\bdef __init__\(.*?(?=\n\s*(?:async )?def |\nclass |\Z)", text, re.DOTALL)
    return any(re.search(rf"\bself\.{name}\b", body) is not None for body in inits)
