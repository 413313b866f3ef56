"""Attributes that come back from a checkpoint on the CPU, in the place of what `__init__` puts on a device.

    def __init__(self, width, device):
        self.mean = torch.zeros(width, device=device)

    def resume(self, path):
        self.mean = torch.load(path, map_location="cpu")["mean"]  # stays on the CPU

    def __call__(self, x):
        return x - self.mean

The entry may also come through a parameter, `self.mean = state["mean"]` in a `load_state_dict` of the class's own, where a
call in the file passes it on. Other methods then find the attribute on the CPU. Nothing is said where some other code may
bind the attribute to anything else than what is computed from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.text.checkpoint_entries import entry_source, is_bound, load_of
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.method_names import SAME_PLACE
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import given, is_own_attribute, last_name
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import ACCELERATORS, CPU, SOMEWHERE, Symbol, Value, is_assumed
from devlint.model import Origin, Span

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

Method = ast.FunctionDef | ast.AsyncFunctionDef
#: The text of the origin of such an attribute.
KEPT = "kept here, on the CPU, because its checkpoint was loaded to the CPU"


class Entry(NamedTuple):
    """Where an attribute takes an entry of a checkpoint, and what `__init__` has put there."""

    operand: Operand
    attribute: Operand
    function: str

    def beside(self, other: Operand) -> Operand | None:
        """What the entry takes the place of, where it meets something; None where that may be on the CPU as well.

        Copies of parameters are where these are, which must be known.
        """
        if self.attribute.value.is_tensor:
            return self.attribute
        if is_assumed(other.value.device):
            return None
        return replace(self.attribute, value=replace(self.attribute.value, device=other.value.device))


class Taken(NamedTuple):
    """Where a method takes an attribute from a checkpoint."""

    method: str
    statement: ast.Assign
    load: ast.Call


def restored(
    machine: Machine, class_: ClassFacts, name: str, first: Value, derived: Callable[[Method], set[int]]
) -> Value | None:
    """What other methods find in an attribute that a method takes from a checkpoint on the CPU; None for any other.

    `first`: what `__init__` leaves there. `derived`: the targets that a method binds to what is computed from them.
    """
    if first.kind != "tensor" or first.zero_dim is not False or not is_put(first):
        return None
    taken = entries(machine, class_, name, derived)
    if not taken:
        return None
    origin, kept = origins(machine, taken[0])
    value = Value("tensor", CPU, False, because=(kept, origin))
    return note(machine, class_, name, first, taken[0], value, value)


def entries(
    machine: Machine, class_: ClassFacts, name: str, derived: Callable[[Method], set[int]]
) -> list[Taken] | None:
    """Where methods take an attribute from a checkpoint; None where they bind it to anything else that is not derived."""
    taken: list[Taken] = []
    for method_name, method in class_.methods.items():
        own = machine.scan.functions.get(id(method))
        stores = [s for s in own.stores if is_own_attribute(s, name)] if own is not None else []
        if own is not None and any(s.attr == "data" and is_own_attribute(s.value, name) for s in own.stores):
            return None  # `self.mean.data = self.mean.to(device)`
        if not stores or method_name == "__init__":
            continue
        plain = [n for n in statements(method) if isinstance(n, ast.Assign) and len(n.targets) == 1]
        values = {id(statement.targets[0]): statement for statement in plain}
        for store in stores:
            statement = values.get(id(store))
            load = loaded(machine, class_, method, statement.value) if statement is not None else None
            if statement is not None and load is not None:
                if may_place(method):
                    return None
                taken.append(Taken(method_name, statement, load))
            elif id(store) not in derived(method):
                return None
    return taken


def may_place(method: Method) -> bool:
    """Whether a method hands its object to something that may move what it keeps, or sets the device to use from then on."""
    for node in walk(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "super":
            if any(isinstance(a, ast.Name) and a.id == "self" for a in (*node.args, *(k.value for k in node.keywords))):
                return True
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and "device" in node.attr:
            return True
    return False


def origins(machine: Machine, taken: Taken) -> tuple[Origin, Origin]:
    """Where a checkpoint is loaded, and where one of its entries is kept."""
    place = Origin(machine.span(taken.load), "every tensor of the checkpoint is put on the CPU here")
    return place, Origin(machine.span(taken.statement.value), KEPT)


def note(
    machine: Machine, class_: ClassFacts, name: str, first: Value, taken: Taken, entry: Value, value: Value
) -> Value:
    """Remember an entry by its place, for when it meets something; gives the value of the attribute."""
    span, target = machine.span(taken.statement.value), taken.statement.targets[0]
    machine.restored[span] = Entry(
        Operand(span, taken.statement.value, machine.text(taken.statement.value), entry),
        Operand(machine.span(target), target, f"self.{name}", first),
        f"{class_.name}.{taken.method}",
    )
    return value


def is_put(value: Value) -> bool:
    """Whether a value is on one device, which the code chooses and which may be an accelerator."""
    if len(value.device) != 1 or is_assumed(value.device):
        return False
    (place,) = value.device
    return place != SOMEWHERE if isinstance(place, Symbol) else place.type in ACCELERATORS


def entry_of(restored: dict[Span, Entry], value: Value) -> Entry | None:
    """The entry of a checkpoint that a value is, or was computed from on the CPU."""
    kept = next((origin.span for origin in value.because if origin.text == KEPT and origin.path is None), None)
    return restored.get(kept) if kept is not None else None


def meeting(entry: Entry, because: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """The places that explain such a meeting: where it was loaded to, what was there at first, and where that shows."""
    first = [Origin(origin.span, "first put on its device here") for origin in entry.attribute.value.because[:1]]
    used = [origin for origin in because if origin.text.startswith("meets ")]
    return (*entry.operand.value.because[1:2], *first, *used[:1])


def loaded(machine: Machine, class_: ClassFacts, method: Method, node: ast.expr) -> ast.Call | None:
    """The `torch.load` onto the CPU of which an expression in a method takes an entry."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME_PLACE:
        if node.args or node.keywords:
            return None
        node = node.func.value
    source = entry_source(node) or node
    found = load_of(machine.imports, method, source)
    if found is not None or not isinstance(source, ast.Name) or is_bound(method, source.id):
        return found
    names = parameter_names(method)
    if source.id not in names[1:]:
        return None
    for site in machine.scan.calls.get(method.name, ()):
        receiver = site.call.func.value if isinstance(site.call.func, ast.Attribute) else None
        around = site.caller.node if site.caller is not None else machine.scan.tree
        if receiver is None or around is None or not is_instance(machine, class_, receiver, site.caller):
            continue
        for argument in given(site.call, source.id, names.index(source.id) - 1):
            found = load_of(machine.imports, around, entry_source(argument) or argument)
            if found is not None:
                return found
    return None


def is_instance(machine: Machine, class_: ClassFacts, node: ast.expr, caller: object) -> bool:
    """Whether an expression is an object of a class: `self` in it, or a name that the file gives new ones and nothing else."""
    name = last_name(node)
    if isinstance(node, ast.Name) and name == "self":
        return getattr(caller, "owner", None) is class_.node
    if not name or not isinstance(node, (ast.Name, ast.Attribute)) or machine.scan.tree is None:
        return False
    values = machine.bound_values.get(name, [])
    made = [value for value in values if isinstance(value, ast.Call) and last_name(value.func) == class_.name]
    others = [v for v in values if v not in made and not (isinstance(v, ast.Constant) and v.value is None)]
    return bool(made) and not others
