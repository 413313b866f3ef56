"""Where a file names a card, and which device it has there: what is in scope, a variable, or the device of a class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeGuard

from devlint.api import ApiCall, CudaMethod, DeviceLiteral, Event, Facts, Load, Move

from ._api import is_legacy_type
from ._given import without_index
from ._run_device import guard_in, placement_of
from ._shared import File, parsed

_USES = frozenset({"argument", "assigned", "map"})
_TAKES_DEVICE = frozenset({"torch.autocast", "torch.set_default_tensor_type", "torch.set_default_device"})


def uses(facts: Facts) -> tuple[CudaMethod | DeviceLiteral, ...]:
    """Where the file uses a card without asking for it."""
    return _uses_of(File(facts))


@lru_cache(maxsize=1)
def _uses_of(file: File) -> tuple[CudaMethod | DeviceLiteral, ...]:
    return tuple(
        without_index(event, file.facts)
        for event in file.facts.events
        if names_card(event) and guard_in(event, file.facts) is None
    )


def names_card(event: Event) -> TypeGuard[CudaMethod | DeviceLiteral]:
    if isinstance(event, CudaMethod):
        return True
    return isinstance(event, DeviceLiteral) and event.role in _USES and not is_of_accelerator(event)


def is_of_accelerator(event: DeviceLiteral) -> bool:
    return (event.call or "").startswith(("torch.cuda.", "torch.accelerator.", f"torch.{event.type}."))


def names_of(use: DeviceLiteral, text: str) -> Iterator[str]:
    """The names that a literal, or the `torch.device` around it, is bound to."""
    above = parents(text)
    around = above.get(place_of(use.node))
    if isinstance(around, ast.Call) and use.call == "torch.device":
        around = above.get(place_of(around))
    if isinstance(around, ast.Assign):
        yield from (ast.unparse(target) for target in around.targets)
    elif isinstance(around, ast.AnnAssign):
        yield ast.unparse(around.target)


def is_named(use: CudaMethod | DeviceLiteral, text: str) -> bool:
    return isinstance(use, DeviceLiteral) and any(names_of(use, text))


def is_parameter(use: DeviceLiteral, text: str) -> bool:
    """Whether a literal is the default of a parameter."""
    return isinstance(parents(text).get(place_of(use.node)), ast.arguments)


Place = tuple[int, int, int | None, int | None]


def place_of(node: ast.AST) -> Place:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


@lru_cache(maxsize=2)
def parents(text: str) -> dict[Place, ast.AST]:
    """What stands around each expression of the file, by the expression's place."""
    tree = parsed(text)
    found: dict[Place, ast.AST] = {}
    for node in ast.walk(tree) if tree is not None else ():
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                found.setdefault(place_of(child), node)
    return found


def sees_none(event: Event) -> bool:
    """Whether nothing in scope says which device an event wants; a default wants the one around its function."""
    if isinstance(event, DeviceLiteral) and event.role == "default":
        return False
    return getattr(event, "run_device", None) is None


def wants_device(event: Event, facts: Facts) -> bool:
    """Whether a fix may put a new device where an event is."""
    if isinstance(event, CudaMethod | DeviceLiteral):
        own = isinstance(event, DeviceLiteral) and (event.role not in _USES or is_named(event, facts.text))
        wants = not own and guard_in(event, facts) is None
    elif isinstance(event, ApiCall):
        wants = is_legacy_type(event.qualname) or ".amp." in event.qualname or event.qualname in _TAKES_DEVICE
    elif isinstance(event, Load):
        wants = event.module and event.map_location is None
    else:
        wants = isinstance(event, Move) and event.method == "type"
    return wants and sees_none(event)


def held(event: Event, facts: Facts) -> str | None:
    """What names the device where an event is: a variable that holds this accelerator, which DEV201 makes a choice of, or
    `self.device` of a class that places things by it."""
    return _variable(event, facts) or _of_class(event, facts)


def _variable(event: Event, facts: Facts) -> str | None:
    """A variable that holds this accelerator by name: `device = torch.device("cuda")`."""
    if not isinstance(event, CudaMethod | DeviceLiteral | ApiCall | Load):
        return None
    type = "cuda" if isinstance(event, Load) else event.type
    if placement_of(facts, type) is not None:
        return None
    found = [
        path
        for path, value in facts.bound_at(event.scope, event.span).items()
        if value.kind in ("device", "string")
        and {getattr(place, "type", None) for place in value.device} == {type}
        and "device" in path.rpartition(".")[2].lower()
        and "[" not in path
    ]
    return found[0] if len(found) == 1 else None


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
    return any(map(is_placed_by_self, ast.walk(class_)))


def is_placed_by_self(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    moves = isinstance(node.func, ast.Attribute) and node.func.attr == "to"
    given = [*(node.args[:1] if moves else ()), *(k.value for k in node.keywords if k.arg == "device")]
    return any(isinstance(each, ast.Attribute) and ast.unparse(each) == "self.device" for each in given)
