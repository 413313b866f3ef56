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
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from devlint.api import (
    ApiCall,
    CudaMethod,
    DeviceLiteral,
    Event,
    Facts,
    Fix,
    Operand,
    Portability,
    RunDeviceNeed,
    Site,
    Span,
)

from ._at_hand import local_name, near, wants_new
from ._given import is_index
from ._run_device import guard_in, guarded_type, placement_of
from ._shared import File, is_none, is_script, parsed, span_of
from ._stays import handed_texts, why_kept
from ._switches import Switch, computed_maps, defaults, own_switch, switches, tested
from ._torch import has_torch
from ._uses import (
    Place,
    held,
    is_named,
    is_placed_by_self,
    names_card,
    names_of,
    parents,
    place_of,
    sees_none,
    uses,
    wants_device,
)

_ACCELERATOR_SINCE = (2, 7)  # torch.accelerator.current_accelerator(check_available=...)
AVAILABLE = {
    "cuda": "torch.cuda.is_available",
    "xpu": "torch.xpu.is_available",
    "mps": "torch.backends.mps.is_available",
    "mtia": "torch.mtia.is_available",
}
_TOO_EARLY = "the available devices are not known here yet, or a function sets the visible devices"
#: Kinds of values that `.to(device)` moves as `.cuda()` does.
MOVABLE = frozenset({"tensor", "parameter", "buffer", "module", "packed"})
#: The name of a new device.
NEW = "device"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
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
    elif type in AVAILABLE:
        place = type if index is None else f"{type}:{index}"
        found = f'"{place}" if {AVAILABLE[type]}() else "cpu"'
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
    """The definition of a `device` that the file does not have.

    None where torch cannot tell what is there, see `why_no_device` for the others.
    """
    if _is_held_back(File(facts)) is not None:
        return None
    types = {use.type for use in uses(facts)}
    if len(types) == 1 and next(iter(types)) in AVAILABLE:
        type = next(iter(types))
    as_text = is_text(facts)
    found = choice(type, shared_index(facts, type), facts, as_text=as_text, quote=quote_of(facts))
    if found is None:
        return None
    asks = f"{AVAILABLE[type]}()" if type in AVAILABLE else ""
    switch = own_switch(AVAILABLE[type], facts) if asks and asks in found else None
    if switch is not None and not _comes_before(switch, facts):
        return RunDeviceNeed(NEW, found.replace(asks, switch.name), after=span_of(switch.statement, facts.text))
    return RunDeviceNeed(NEW, found, inside=_script_alone(facts))


def _comes_before(switch: Switch, facts: Facts) -> bool:
    """Whether a use of the card, outside of functions, comes before the switch is bound."""
    row = switch.statement.lineno
    return any(not use.function and isinstance(use.node, ast.expr) and use.node.lineno < row for use in uses(facts))


def _script_alone(facts: Facts) -> Span | None:
    """The `if __name__ == "__main__"` of the module, where nothing outside of it needs a new device."""
    scripts = _scripts(facts.text)
    if len(scripts) != 1:
        return None
    script = scripts[0]
    rows = [use.node.lineno for use in facts.events if wants_device(use, facts) and isinstance(use.node, ast.expr)]
    rows += [node.lineno for node in (*computed_maps(facts.text), *handed_texts(facts))]
    inside = bool(rows) and all(script.body[0].lineno <= row <= (script.body[-1].end_lineno or 0) for row in rows)
    return span_of(script, facts.text) if inside else None


def why_no_device(facts: Facts) -> str:
    """Why there is no more than a hint where no device of the file is in scope."""
    return _is_held_back(File(facts)) or _TOO_EARLY


@lru_cache(maxsize=1)
def _is_held_back(file: File) -> str | None:
    """Why one device for the whole file cannot be chosen with its imports.

    A function sets which cards are visible: the choice would come too early. Or the file is not converted at all.
    """
    return _TOO_EARLY if _sets_visible_in_function(file.facts.text) else _why_kept(file)


def why_unconverted(facts: Facts) -> str | None:
    """Why no conversion of the file is offered; None where it is."""
    return _why_kept(File(facts))


@lru_cache(maxsize=1)
def _why_kept(file: File) -> str | None:
    """`why_kept`, or a `device` of the file that some of its uses do not see: a second one beside it would be odd."""
    why = why_kept(file.facts)
    if why is not None or not wants_new(file.facts):
        return why
    row = _row_of_own(file)
    return None if row is None else f"line {row} has a `device` that not all lines see which need it"


def is_late(event: DeviceLiteral, facts: Facts) -> bool:
    """Whether a function chooses its `device` too late for other uses: the one choice of the file takes its place."""
    return place_of(event.node) in _late(File(facts))


@lru_cache(maxsize=1)
def _late(file: File) -> frozenset[Place]:
    """The literals that functions bind to `device` alone, where a use of the card sees no device at all."""
    facts = file.facts
    if not wants_new(facts):
        return frozenset()
    return frozenset(
        place_of(use.node)
        for use in uses(facts)
        if isinstance(use, DeviceLiteral)
        and (use.function or _is_in_script(use, facts))
        and use.index in (None, 0)
        and isinstance(use.node, ast.expr)
        and list(names_of(use, facts.text)) == ["device"]
    )


def _row_of_own(file: File) -> int | None:
    """The row of a `device` that the file has: of the module, of a class, or of a function that needs it.

    What is chosen too late is none, nor a literal that an attribute gets. What `from x import *` binds is not known: there
    it is the file's where the file reads it.
    """
    tree = parsed(file.facts.text)
    if tree is None:
        return 0
    if _is_of_module(tree, file) and not _chooses_late(tree.body, file):
        names = (node for node in ast.walk(tree) if _binds_device(node) or isinstance(node, ast.Name))
        return next((getattr(node, "lineno", 1) for node in names if getattr(node, "id", NEW) == NEW), 1)
    nodes = list(ast.walk(tree))
    kept = [node.lineno for node in nodes if isinstance(node, ast.Attribute) and _keeps_device(node)]
    literals = [use for use in uses(file.facts) if isinstance(use, DeviceLiteral)]
    given = sum(name == "self.device" for use in literals for name in names_of(use, file.facts.text))
    own = kept if len(kept) > given else []
    if not kept:
        own = [node.lineno for node in nodes if isinstance(node, ast.Call) and is_placed_by_self(node)]
    own += [node.lineno for node in nodes if isinstance(node, _Function) and _is_own_of(node, file)]
    return min(own, default=None)


def _keeps_device(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and ast.unparse(node) == "self.device"


def _is_own_of(function: _Function, file: File) -> bool:
    """Whether a function has a device of its own that others need, or lines that would read it for the new one.

    It takes a `device` without a default that names the card, or binds one that is not chosen too late.
    """
    rows = (use.node.lineno for use in uses(file.facts) if isinstance(use.node, ast.expr) and sees_none(use))
    is_used = any(function.lineno <= row <= (function.end_lineno or row) for row in rows)
    given = [each for each in ast.walk(function.args) if isinstance(each, ast.arg) and each.arg == "device"]
    if given:
        default = dict(defaults(function.args)).get("device")
        return is_used and not (isinstance(default, ast.Constant) and isinstance(default.value, str))
    if not any(map(_binds_device, ast.walk(function))) or _chooses_late(function.body, file):
        return False
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Assign) and _binds(node.targets)]
    return is_used or any(map(_chooses, values))


def _chooses(value: ast.expr) -> bool:
    """Whether an expression makes a device, or asks which is there."""
    names = (each.attr for each in ast.walk(value) if isinstance(each, ast.Attribute))
    return isinstance(value, ast.Call | ast.IfExp) and any(name in ("is_available", "device") for name in names)


def _binds(targets: Sequence[ast.expr]) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "device" for each in targets)


def _is_in_script(use: DeviceLiteral, facts: Facts) -> bool:
    row = getattr(use.node, "lineno", 0)
    return any(script.lineno < row <= (script.end_lineno or 0) for script in _scripts(facts.text))


def _scripts(text: str) -> list[ast.If]:
    """The statements `if __name__ == "__main__"` of the module."""
    tree = parsed(text)
    return [node for node in (tree.body if tree is not None else ()) if is_script(node)]


def _chooses_late(body: Sequence[ast.stmt], file: File) -> bool:
    """Whether a function binds `device` to nothing but literals that are chosen too late."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    bindings = [node for node in nodes if _binds_device(node)]
    chosen = [
        part
        for node in nodes
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["device"]
        for part in ast.walk(node.value)
        if isinstance(part, ast.expr) and place_of(part) in _late(file)
    ]
    return 0 < len(bindings) == len(chosen) and all(isinstance(node, ast.Name) for node in bindings)


def _binds_device(node: ast.AST) -> bool:
    """Whether a node by itself binds or declares `device`."""
    if isinstance(node, ast.Name):
        return node.id == "device" and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Global | ast.Nonlocal):
        return "device" in node.names
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0] == "device"
    return "device" in (getattr(node, "name", None), getattr(node, "arg", None)) and not isinstance(node, ast.keyword)


def _is_of_module(tree: ast.Module, file: File) -> bool:
    """Whether the module binds `device`, or reads one that `from x import *` may give."""
    try:
        tables = [symtable.symtable(file.facts.text, "", "exec")]
    except (SyntaxError, ValueError, RecursionError):
        return True
    for table in tables:  # which grows
        tables += table.get_children()
    known = [table.lookup(NEW) for table in tables if NEW in table.get_identifiers()]
    of_module = [each for each in known if each.is_global()]
    if any(each.is_assigned() or each.is_imported() or each.is_namespace() for each in of_module):
        return True
    by_star = any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(tree))
    return by_star and any(each.is_referenced() for each in of_module)


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
    return bool(handed_texts(facts)) or any(isinstance(use, DeviceLiteral) and _is_unknown(use) for use in uses(facts))


def shared_index(facts: Facts, type: str) -> int | None:
    """The index where all that name a card of a type name the same; None where one leaves it open, or they differ."""
    indices = {use.index for use in _named(facts, type)}
    return next(iter(indices)) if len(indices) == 1 else None


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


@dataclass(frozen=True, slots=True)
class RunDevice:
    """An expression for the device of the run, and what a fix needs so that it is defined.

    `is_text`: it is a new text; `whole`: what a name that one function gets stands for.
    """

    text: str
    needs: tuple[RunDeviceNeed, ...] = ()
    is_text: bool = False
    whole: str = ""

    @property
    def owner(self) -> str:
        """The tensor that has the device: `x` of `x.device`; else the whole expression."""
        return (self.whole or self.text).removesuffix(".device")


def run_device(in_scope: str | None, site: Site, event: Event | None = None) -> RunDevice | None:
    """The run's device: the expression that is in scope, else that of a tensor or module at hand, else a new name.

    `event`: what is to be put there; without it nothing at hand is asked. A file that needs the new name somewhere has it
    everywhere, and so has a program whose conversion is safe. None where no device can be chosen with the imports, see
    `new_device`.
    """
    facts = site.facts
    row = getattr(event.node, "lineno", 0) if event is not None else 0
    if in_scope is not None and not is_index(in_scope, row, facts):
        return RunDevice(in_scope)
    if event is not None and (known := held(event, facts)) is not None:
        return RunDevice(known)
    type = event.type if isinstance(event, CudaMethod | DeviceLiteral) else "cuda"
    need = new_device(type, facts)
    if event is not None and not is_safe(type, facts) and (need is None or not wants_new(facts)):
        found = near(event, facts)
        local = local_name(found, event, facts) if found is not None else None
        if local is not None:
            return RunDevice(local.name, (local,), whole=local.choice)
        if found is not None:
            return RunDevice(found)
    return None if need is None else RunDevice(need.name, (need,), is_text(facts))


def is_safe(type: str, facts: Facts) -> bool:
    """Whether the whole file can be converted and does the same wherever it worked."""
    return _is_safe(type, File(facts))


@lru_cache(maxsize=4)
def _is_safe(type: str, file: File) -> bool:
    facts = file.facts
    named = list(_named(facts, type))
    is_test = facts.is_test or any(each.split(".")[0] in ("pytest", "unittest") for each in facts.imports.values())
    if is_test or any(use.index not in (None, 0) for use in named) or placement_of(facts, type) is not None:
        return False
    if not _is_program(facts) or _is_held_back(file) is not None or handed_texts(facts):
        return False
    if _starts_processes(facts) or any(_sets_current(event) for event in facts.events):
        return False
    if _keeps_card(facts.text) or any(_stays(event, type, facts) for event in facts.events):
        return False
    own = [use for use in uses(facts) if use.type == type]
    return bool(own) and all(_is_plain(use, facts) for use in own) and not _decides_by_name(facts)


def _stays(event: Event, type: str, facts: Facts) -> bool:
    """Whether a place needs the card, and no safe fix changes that: the conversion would not be whole."""
    if not isinstance(event, DeviceLiteral | ApiCall) or event.type != type or guard_in(event, facts) is not None:
        return False
    if isinstance(event, ApiCall):
        return event.raises and event.is_call and not event.under.catches("RuntimeError", "AssertionError")
    return event.role in ("computed", "default")


def _keeps_card(text: str) -> bool:
    """Whether a switch for the card is on, a checkpoint goes to a computed card, or an option asks for half precision."""
    tree = parsed(text)
    return bool(switches(text) or computed_maps(text)) or any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "half"
        for node in (ast.walk(tree) if tree is not None else ())
    )


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
    return any(not use.function and not is_named(use, facts.text) for use in uses(facts))


def _is_plain(use: CudaMethod | DeviceLiteral, facts: Facts) -> bool:
    """Whether a use is a device argument of torch's own, a name for the card, or the move of a tensor or a module."""
    if use.under.caught or (use.run_device is not None and not use.run_device_is_proved):
        return False
    if isinstance(use, DeviceLiteral):
        return not _is_unknown(use) and _is_taken_as_device(use, facts.text)
    if use.argument is not None and use.index is None and not is_none(use.argument):
        return False
    return surely_movable(use.receiver, facts)


def _is_taken_as_device(use: DeviceLiteral, text: str) -> bool:
    """Whether a literal, or the `torch.device` around it, is bound to a name or is itself a device argument."""
    above = parents(text)
    whole: ast.AST = use.node
    around = above.get(place_of(whole))
    if use.call == "torch.device" and isinstance(around, ast.Call):
        whole, around = around, above.get(place_of(around))
    elif use.role in ("argument", "map"):
        return isinstance(around, ast.Call | ast.keyword)
    if isinstance(around, ast.Assign | ast.AnnAssign):
        return around.value is not None and place_of(around.value) == place_of(whole)
    if isinstance(around, ast.keyword):
        return around.arg in ("device", "map_location")
    return isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute) and around.func.attr == "to"


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


def _named(facts: Facts, type: str) -> Iterator[CudaMethod | DeviceLiteral]:
    return (event for event in facts.events if names_card(event) and event.type == type)


def _is_unknown(use: DeviceLiteral) -> bool:
    """Whether a literal goes to what nobody knows, which may want a text."""
    return use.role == "argument" and use.call is None


def _sets_current(event: Event) -> bool:
    return isinstance(event, ApiCall) and event.qualname in _SETS_CURRENT


def _starts_processes(facts: Facts) -> bool:
    return any(f"{name}.".startswith(tuple(f"{each}." for each in _PROCESSES)) for name in facts.imports.values())


def _decides_by_name(facts: Facts) -> bool:
    """Whether a name for the card is compared or tested: on another machine the answer would change."""
    names = {name for use in uses(facts) if isinstance(use, DeviceLiteral) for name in names_of(use, facts.text)}
    return bool(names) and not names.isdisjoint(tested(facts.text))
