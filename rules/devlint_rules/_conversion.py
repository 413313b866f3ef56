"""A file that names one card is converted as a whole: what stands for the card, in the idiom of the file, and how safe.

The device is chosen once. A name that the file has for its card keeps its name and its form: a text stays a text, a
`torch.device` stays one, and card 0 stays card 0. Where there is none, one definition is added. `torch.accelerator` is
used only where the project says that its lowest torch has it; else the choice is the usual one, between the named
accelerator and the CPU.

The conversion is safe where the converted file does the same wherever it worked: each use is a device argument of
torch's own or the move of what is surely a tensor or a module, no card but the first is named, nothing makes another card
the current one, and nothing catches the error of a machine without the card.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeGuard

from devlint.api import (
    ApiCall,
    CudaMethod,
    DeviceLiteral,
    Event,
    Facts,
    Fix,
    Load,
    Move,
    Operand,
    Portability,
    RunDeviceNeed,
)

from ._run_device import guard_of, guarded_type, placement_of, says_accelerator
from ._shared import parsed
from ._torch import has_torch

_ACCELERATOR_SINCE = (2, 7)  # torch.accelerator.current_accelerator(check_available=...)
_AVAILABLE = {
    "cuda": "torch.cuda.is_available",
    "xpu": "torch.xpu.is_available",
    "mps": "torch.backends.mps.is_available",
    "mtia": "torch.mtia.is_available",
}
#: Why there is no more than a hint where a device is not chosen with the imports.
TOO_EARLY = "the available devices are not known here yet, or a function sets the visible devices"
_USES = frozenset({"argument", "assigned", "map"})
#: Kinds of values that `.to(device)` moves as `.cuda()` does.
MOVABLE = frozenset({"tensor", "parameter", "buffer", "module", "packed"})
#: Methods that give a module's parameters: nothing else that has `cuda()` has them.
_OF_MODULES = frozenset({"parameters", "named_parameters"})
#: Other processes may use other cards, and must not find CUDA started.
_PROCESSES = ("multiprocessing", "torch.multiprocessing", "torch.distributed", "concurrent.futures", "ray", "horovod")
_SETS_CURRENT = frozenset(
    {"torch.cuda.set_device", "torch.cuda.device", "torch.cuda.device_of", "torch.accelerator.set_device_index",
     "torch.accelerator.device_index", "torch.accelerator.set_device_idx"}
)  # fmt: skip


def choice(type: str, index: int | None, facts: Facts, *, as_text: bool, quote: str = '"') -> str | None:
    """An expression for the device that is there, with torch's names in full. None: the project's torch cannot tell.

    `index`: the card that it names where it names the accelerator; `as_text`: a text instead of a `torch.device`.
    """
    known = (
        index in (None, 0)
        and facts.torch_stated
        and has_torch(_ACCELERATOR_SINCE, facts)
        and guarded_type(facts) is None
    )
    accelerator = "torch.accelerator.current_accelerator"
    if known and not as_text:
        found = f'{accelerator}(check_available=True) or torch.device("cpu")'
    elif known and index is None:
        found = f'{accelerator}().type if torch.accelerator.is_available() else "cpu"'
    elif type in _AVAILABLE:
        place = type if index is None else f"{type}:{index}"
        found = f'"{place}" if {_AVAILABLE[type]}() else "cpu"'
        found = found if as_text else f"torch.device({found})"
    else:
        return None
    return found.replace('"', quote)


def converts(type: str, facts: Facts) -> bool:
    """Whether the file names a card of a type in places that a conversion changes."""
    return any(use.type == type for use in uses(facts))


def quote_of(facts: Facts) -> str:
    """The quotes of the file's texts."""
    return "'" if facts.text.count("'") > facts.text.count('"') else '"'


def new_device(type: str, facts: Facts) -> RunDeviceNeed | None:
    """The definition of a device under a name that the file does not have: `device`, or `run_device` where that is taken.

    None where torch cannot tell what is there, and where a function sets which cards are visible: a device that is chosen
    with the imports would be chosen too early.
    """
    if _sets_visible_in_function(facts.text):
        return None
    name = "run_device" if _is_taken(_File(facts)) else "device"
    types = {use.type for use in uses(facts)}
    if len(types) == 1 and next(iter(types)) in _AVAILABLE:
        type = next(iter(types))
    as_text = is_text(facts)
    found = choice(type, shared_index(facts, type), facts, as_text=as_text, quote=quote_of(facts))
    return None if found is None else RunDeviceNeed(name, found)


@lru_cache(maxsize=1)
def _is_taken(file: _File) -> bool:
    """Whether `device` is bound at module level, or in a function that names a device, a tensor type or a checkpoint.

    What `from x import *` binds is not known: there it is taken where the file reads it.
    """
    tree = parsed(file.facts.text)
    if tree is None:
        return True
    bound = _bound(tree.body)
    if "device" in bound or ("*" in bound and _reads_device(tree)):
        return True
    rows = {
        event.node.lineno
        for event in file.facts.events
        if _may_name_run(event) and isinstance(event.node, ast.expr | ast.stmt)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if not any(function.lineno <= row <= (function.end_lineno or row) for row in rows):
            continue
        arguments = [] if isinstance(function, ast.ClassDef) else list(ast.walk(function.args))
        given = [each.arg for each in arguments if isinstance(each, ast.arg)]
        body = [] if isinstance(function, ast.Lambda) else function.body
        if "device" in (*given, *_bound(body)):
            return True
    return False


def _reads_device(tree: ast.Module) -> bool:
    return any(isinstance(n, ast.Name) and n.id == "device" and isinstance(n.ctx, ast.Load) for n in ast.walk(tree))


def _may_name_run(event: Event) -> bool:
    """Whether a fix may put the device of the run where an event is."""
    if isinstance(event, Move):
        return event.method == "type"
    return isinstance(event, CudaMethod | DeviceLiteral | ApiCall | Load)


def _bound(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements bind in their own scope."""
    found: set[str] = set()
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, ast.MatchAs | ast.MatchStar) and node.name
        ):
            found.add(node.name)
        pending.extend(ast.iter_child_nodes(node))
    return found


@lru_cache(maxsize=4)
def _sets_visible_in_function(text: str) -> bool:
    """Whether a function sets the variable that says which cards are visible."""
    tree = parsed(text) if "VISIBLE_DEVICES" in text else None
    for function in ast.walk(tree) if tree is not None else ():
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_variable(node.slice):
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                sets = node.func.attr in ("setdefault", "putenv", "update")
                if sets and any(_is_variable(each) for each in ast.walk(node)):
                    return True
    return False


def _is_variable(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith("VISIBLE_DEVICES")


def is_text(facts: Facts) -> bool:
    """Whether a new device is a text: the file hands a text to what nobody knows to take a `torch.device`."""
    return any(isinstance(use, DeviceLiteral) and _is_unknown(use) for use in uses(facts))


def shared_index(facts: Facts, type: str) -> int | None:
    """0 where all that name a card of a type name the first; None where one leaves it open, or another card is named."""
    indices = {use.index for use in _named(facts, type)}
    return 0 if indices == {0} else None


def portability(event: CudaMethod | DeviceLiteral) -> Portability:
    """Whether a machine without the card stops where the code names it."""
    return Portability(stops=not (isinstance(event, DeviceLiteral) and event.role not in ("argument", "map")))


def decision(event: CudaMethod | DeviceLiteral, fix: Fix, facts: Facts) -> str:
    """What a finding about a card is decided with: the card where the file places work on several, else what is there.

    A hint in a file that names one card is a decision of its own: the one choice does not settle it.
    """
    if placement_of(facts, event.type) is not None and event.index is not None:
        return f"{event.type}:{event.index}"
    return event.type if fix.edits else ""


def is_safe(type: str, facts: Facts) -> bool:
    """Whether the whole file can be converted and does the same wherever it worked."""
    return _is_safe(type, _File(facts))


@lru_cache(maxsize=4)
def _is_safe(type: str, file: _File) -> bool:
    facts = file.facts
    named = list(_named(facts, type))
    is_test = facts.is_test or any(each.split(".")[0] in ("pytest", "unittest") for each in facts.imports.values())
    if is_test or any(use.index not in (None, 0) for use in named) or placement_of(facts, type) is not None:
        return False
    if not _is_program(facts) or _sets_visible_in_function(facts.text):
        return False
    if _starts_processes(facts) or any(_sets_current(event) for event in facts.events):
        return False
    if _keeps_card(facts.text) or any(_stays(event, type, facts) for event in facts.events):
        return False
    own = [use for use in uses(facts) if use.type == type]
    return bool(own) and all(_is_plain(use, facts) for use in own) and not _decides_by_name(facts)


def _stays(event: Event, type: str, facts: Facts) -> bool:
    """Whether a place needs the card, and no safe fix changes that: the conversion would not be whole."""
    if not isinstance(event, DeviceLiteral | ApiCall) or event.type != type or guard_of(event) is not None:
        return False
    if isinstance(event, ApiCall):
        return event.raises and event.is_call and not event.under.catches("RuntimeError", "AssertionError")
    return event.role == "computed" or (event.role == "default" and is_parameter(event, facts.text))


def is_parameter(use: DeviceLiteral, text: str) -> bool:
    """Whether a literal is the default of a parameter."""
    return isinstance(_parents(text).get(_place(use.node)), ast.arguments)


@lru_cache(maxsize=4)
def _keeps_card(text: str) -> bool:
    """Whether a switch for the card is on, or the file asks for half precision, which few layers have on a CPU."""
    tree = parsed(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.keyword) and node.arg is not None and says_accelerator(node.arg):
            if isinstance(node.value, ast.Constant) and node.value.value is True:
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "half":
            return True
    return False


def _is_program(facts: Facts) -> bool:
    """Whether the file is run by itself: what it defines at its start is there for nobody else."""
    tree = parsed(facts.text)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.For | ast.While | ast.With):
            return True
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            return True  # main()
    return any(not use.function and not _is_named(use, facts.text) for use in uses(facts))


def _is_named(use: CudaMethod | DeviceLiteral, text: str) -> bool:
    return isinstance(use, DeviceLiteral) and any(_names_of(use, text))


def _is_plain(use: CudaMethod | DeviceLiteral, facts: Facts) -> bool:
    """Whether a use is a device argument of torch's own, a name for the card, or the move of a tensor or a module."""
    if use.under.caught or (use.run_device is not None and not use.run_device_is_proved):
        return False
    if isinstance(use, DeviceLiteral):
        return not _is_unknown(use) and _is_taken_as_device(use, facts.text)
    if use.argument is not None and use.index is None and not _is_none(use.argument):
        return False
    return surely_movable(use.receiver, facts)


def _is_taken_as_device(use: DeviceLiteral, text: str) -> bool:
    """Whether a literal, or the `torch.device` around it, is bound to a name or is itself a device argument."""
    above = _parents(text)
    whole: ast.AST = use.node
    around = above.get(_place(whole))
    if use.call == "torch.device" and isinstance(around, ast.Call):
        whole, around = around, above.get(_place(around))
    elif use.role in ("argument", "map"):
        return isinstance(around, ast.Call | ast.keyword)
    if isinstance(around, ast.Assign | ast.AnnAssign):
        return around.value is not None and _place(around.value) == _place(whole)
    if isinstance(around, ast.keyword):
        return around.arg in ("device", "map_location")
    return isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute) and around.func.attr == "to"


Place = tuple[int, int, int | None, int | None]


def _place(node: ast.AST) -> Place:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


@lru_cache(maxsize=2)
def _parents(text: str) -> dict[Place, ast.AST]:
    """What stands around each expression of the file, by the expression's place."""
    tree = parsed(text)
    found: dict[Place, ast.AST] = {}
    for node in ast.walk(tree) if tree is not None else ():
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                found.setdefault(_place(child), node)
    return found


def surely_movable(receiver: Operand, facts: Facts) -> bool:
    """Whether what `.cuda()` is called on is a tensor or a module, so that `.to(device)` moves it as well.

    Known by its kind; an item of a loader of torch's own, of which only tensors have the method; or by what the file calls on
    the same name, which modules alone have.
    """
    if receiver.value.kind in MOVABLE:
        return True
    if receiver.value.kind == "tensors" and "collate_fn" not in facts.text:
        return True
    names = {receiver.text, *_bound_to(receiver, facts.text)}
    return not names.isdisjoint(_modules_by_use(facts.text))


def _bound_to(receiver: Operand, text: str) -> Iterator[str]:
    """The names that the moved object is bound to: `net` in `net = Net().cuda()`."""
    tree = parsed(text)
    for node in ast.walk(tree) if tree is not None else ():
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
        ):
            moved = node.value.func.value
            if (moved.lineno, moved.col_offset) == (receiver.node.lineno, receiver.node.col_offset):
                yield from (ast.unparse(target) for target in node.targets)


@lru_cache(maxsize=4)
def _modules_by_use(text: str) -> frozenset[str]:
    """The expressions whose parameters the file asks for."""
    tree = parsed(text)
    return frozenset(
        ast.unparse(node.func.value)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_MODULES
    )


class _File:
    """Facts by identity: what is asked of them for each finding is worked out once."""

    __slots__ = ("facts",)

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _File) and other.facts is self.facts

    def __hash__(self) -> int:
        return id(self.facts)


def uses(facts: Facts) -> tuple[CudaMethod | DeviceLiteral, ...]:
    """Where the file uses a card without asking for it."""
    return _uses_of(_File(facts))


@lru_cache(maxsize=1)
def _uses_of(file: _File) -> tuple[CudaMethod | DeviceLiteral, ...]:
    return tuple(event for event in file.facts.events if _names_card(event) and guard_of(event) is None)


def _named(facts: Facts, type: str) -> Iterator[CudaMethod | DeviceLiteral]:
    return (event for event in facts.events if _names_card(event) and event.type == type)


def _names_card(event: Event) -> TypeGuard[CudaMethod | DeviceLiteral]:
    if isinstance(event, CudaMethod):
        return True
    return isinstance(event, DeviceLiteral) and event.role in _USES and not _is_of_accelerator(event)


def _is_of_accelerator(event: DeviceLiteral) -> bool:
    return (event.call or "").startswith(("torch.cuda.", "torch.accelerator.", f"torch.{event.type}."))


def _is_unknown(use: DeviceLiteral) -> bool:
    """Whether a literal goes to what nobody knows, which may want a text."""
    return use.role == "argument" and use.call is None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_current(index: str, facts: Facts) -> bool:
    """Whether an index is that of the current card: the file makes it so, by `set_device` of the same."""
    return any(
        isinstance(other, ApiCall)
        and other.qualname.endswith((".set_device", ".set_device_index"))
        and [operand.text for operand in other.arguments.values()] == [index]
        for other in facts.events
    )


def _sets_current(event: Event) -> bool:
    return isinstance(event, ApiCall) and event.qualname in _SETS_CURRENT


def _starts_processes(facts: Facts) -> bool:
    return any(f"{name}.".startswith(tuple(f"{each}." for each in _PROCESSES)) for name in facts.imports.values())


def _decides_by_name(facts: Facts) -> bool:
    """Whether a name for the card is compared or tested: on another machine the answer would change."""
    names = {name for use in uses(facts) if isinstance(use, DeviceLiteral) for name in _names_of(use, facts.text)}
    return bool(names) and not names.isdisjoint(_tested(facts.text))


def _names_of(use: DeviceLiteral, text: str) -> Iterator[str]:
    """The names that a literal, or the `torch.device` around it, is bound to."""
    above = _parents(text)
    around = above.get(_place(use.node))
    if isinstance(around, ast.Call) and use.call == "torch.device":
        around = above.get(_place(around))
    if isinstance(around, ast.Assign):
        yield from (ast.unparse(target) for target in around.targets)
    elif isinstance(around, ast.AnnAssign):
        yield ast.unparse(around.target)


@lru_cache(maxsize=4)
def _tested(text: str) -> frozenset[str]:
    """The names and attributes that conditions of the file read."""
    tree = parsed(text)
    found: set[str] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Compare | ast.BoolOp):
            parts: list[ast.AST] = [node]
        elif isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            parts = [node.test]
        elif isinstance(node, ast.Match):
            parts = [node.subject]
        else:
            continue
        for part in parts:
            found |= {ast.unparse(n) for n in ast.walk(part) if isinstance(n, ast.Name | ast.Attribute)}
    return frozenset(found)
