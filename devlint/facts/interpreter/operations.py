"""Operations on several tensors: when torch refuses them, and where the result is.

The mixing rules are torch's own (`native_functions.yaml`, see `devlint.knowledge`): "exact" operations want every tensor
on one device; "scalar" ones (TensorIterator) excuse a 0-dim CPU tensor; "index" ones take indices from the CPU; "copy"
and "none" do not care.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from devlint.facts.events import Creation, How, Meet, Move, Operand, Scope
from devlint.facts.frozen import replace
from devlint.facts.idioms import beside_kept, half_moved, lengths_beside_data, looked_up, moved_for_one_use, restored
from devlint.facts.idioms.placeholders import is_placeholder
from devlint.facts.idioms.randomness import is_loaded
from devlint.facts.interpreter.machine import Machine
from devlint.facts.text.classes import KEPT, Unregistered
from devlint.facts.text.nodes import walk
from devlint.facts.text.signs import is_put_before
from devlint.facts.values import (
    BATCH,
    COMPUTED,
    CPU,
    GUESS,
    HOME,
    META,
    UNKNOWN,
    Conflict,
    Device,
    Place,
    Symbol,
    Value,
    conflict,
    describe,
    is_assumed,
    is_surely_accelerator,
    may_be_accelerator,
)
from devlint.model import Origin, Span

CPU_PLACE = Place("cpu")
#: Type name of what a loop over a tensor gives: a number, where that has one dimension.
TURN = "turn"
HOST_BATCH = "its batches come from host memory"
#: The text of the origin of what a tokenizer gives.
ENCODED = "tensors made in CPU memory here"
STATE = "state"  # type name of the tensors in a `state_dict`
_NAMES_ACCELERATOR = re.compile(r"(?i)cuda|gpu|xpu|accelerator")


class Operations(Machine):
    """Adds `meet` (does torch refuse this?) and `combine` (where is the result?)."""

    def conflict_of(self, a: Value, b: Value) -> Conflict | None:
        """`conflict` of two values. One that on some path is a fresh CPU tensor conflicts there with an accelerator's."""
        if BATCH in (a.type_name, b.type_name) and HOME in (a.device, b.device):
            own = self.owner is not None and self.owner.is_module  # a tokenizer's in a module's own method
            if not own or not (is_encoded(a) or is_encoded(b)):
                return None  # a loader and a model that are both arguments: nothing says that the model moved
        if any(
            (one.type_name == GUESS or is_loaded(one)) and one.device == CPU and other.device == HOME
            for one, other in ((a, b), (b, a))
        ):
            return None  # one assumption against another
        if a.split is not None and b.split is not None and a.split[0] == b.split[0]:
            # told apart by one condition: they are where they are together
            pairs = list(zip(a.split[1:], b.split[1:], strict=True))
            if any(is_surely_accelerator(x.device) and is_surely_accelerator(y.device) for x, y in pairs):
                # both are moved where there is a card, so that nothing is assumed to be on one where there is none
                pairs = [(x, y) for x, y in pairs if HOME not in (x.device, y.device)]
            return next((level for x, y in pairs if (level := self.conflict_of(x, y)) is not None), None)
        elif (a.split or b.split) and (half_moved.meets(self, a, b) or half_moved.meets(self, b, a)):
            return self.conflict(CPU, b.device if a.kind == "module" else a.device)
        for one, other in ((a, b), (b, a)):
            if one.device == CPU and CPU_PLACE in other.device and other.device != CPU:
                # the other is on the CPU too on some path: only what never leaves it is off on the others
                if not one.made and not (one.zero_dim is False and (one.kind == "tensors" or is_of_batch(one))):
                    return None
            if one.device == CPU and one.made and other.made and len(other.device) == 2 and CPU_PLACE in other.device:
                elsewhere = frozenset(p for p in other.device if p != CPU_PLACE)
                if elsewhere == HOME:  # an argument, or what is made in its stead: it is off beside the argument
                    return self.conflict(CPU, elsewhere)
        found = self.conflict(a.device, b.device)
        if found is None and CPU_PLACE in a.device | b.device:
            for mixed, other in ((a, b), (b, a)):
                if mixed.made and len(mixed.device) > 1 and CPU_PLACE in mixed.device and CPU_PLACE not in other.device:
                    if mixed.split is not None and _NAMES_ACCELERATOR.search(mixed.split[0]) is not None:
                        return None  # `if use_cuda: x = x.cuda()`: it stays where nothing else is on an accelerator
                    return self.conflict(CPU, other.device)
        return found

    def conflict(self, a: Device, b: Device) -> Conflict | None:
        """`values.conflict` under the guards and settings that hold here."""
        found = conflict(a, b)
        if found is None:
            return None
        fails = self.guards.fails
        if "accelerator" in fails:
            return None
        for device in (a, b):
            for place in device:
                if isinstance(place, Place) and place.type in fails:
                    return None
        if found == "assume":
            if not self.assume and (is_assumed(a) or is_assumed(b)):
                return None
            if "cuda" in fails:
                return None
            if self.host and not (self.is_placed_in_init(a) or self.is_placed_in_init(b)):
                return None
        return found

    def is_placed_in_init(self, device: Device) -> bool:
        """Whether the `__init__` of a module puts a value on the device that it is given, before the module moves.

        Not where it asks something else that it is given for its device.
        """
        named = [
            p for p in device if isinstance(p, Symbol) and p not in HOME and "." not in p.name.removeprefix("self.")
        ]
        return self.in_init and bool(device) and len(named) == len(device)

    def excused(self, operand: Operand, mixing: str, written: bool) -> bool:
        """Whether a CPU operand may stay there: a 0-dim tensor in an operation that takes one. Not known counts as one."""
        value = operand.value
        if CPU_PLACE not in value.device:
            return False
        if mixing == "scalar" and not written:
            if value.zero_dim is True:
                return True
            if value.zero_dim is False:
                return False
            zero_dim = value.made[0].zero_dim if len(value.device) > 1 and value.made else value.zero_dim
            return zero_dim is not False
        return False

    def meet(
        self,
        node: ast.expr,
        operands: Sequence[Operand],
        how: How,
        operation: str,
        mixing: str | None,
        written: int | None = None,
        unread: bool = False,
    ) -> Operand | None:
        """Emit a `Meet` for the first pair that torch refuses; the operand that is off is returned.

        `written`: index of the operand that the operation writes to (in place, `out=`), which is never excused.
        `unread`: what is called is known by its name alone.
        """
        if mixing in (None, "copy", "none") or len(operands) < 2:
            return None
        if self.packs:
            lengths_beside_data.note_meeting(self, node, operands, mixing)
        known = [(i, o) for i, o in enumerate(operands) if o.value.device and o.value.device != META]
        culprits: list[tuple[Operand, Operand, Conflict]] = []
        for a_index, (i, a) in enumerate(known):
            for j, b in known[a_index + 1 :]:
                level = self.conflict_of(a.value, b.value)
                if level is None:
                    for new, host in ((a.value, b.value), (b.value, a.value)):
                        if new.made and is_of_host(host):
                            self.beside_host.update(creation.span for creation in new.made)
                    continue
                off, other, off_index = self._who_is_off(i, a, j, b)
                if mixing == "expanded" and off.value.zero_dim is not False:
                    if other.value.zero_dim is not False or off.value.zero_dim is None:
                        continue
                elif self.excused(off, mixing or "exact", off_index == written):
                    continue
                if other.value.zero_dim is True and mixing == "scalar" and other.value.device == CPU:
                    continue
                if mixing == "index" and off_index != 0 and CPU_PLACE in off.value.device:
                    continue  # a CPU index into an accelerator tensor is copied for us
                if how == "index" and operation == "index" and off_index == 0 and has_no_items(off.value):
                    continue  # torch refuses more indices than dimensions, wherever both are
                if how in ("module", "operator") and is_placeholder(off.value):
                    continue  # what has no elements is combined with nothing: it is replaced before
                if mixing == "index" and off.value.device != CPU and is_placeholder(off.value):
                    continue  # on the other path it holds what is indexed
                if is_put_beside_guess(off, other.value) or is_at(a, b) or is_at(b, a):
                    continue
                if level == "assume" and off.value.kind == "module" and off.value.moved:
                    continue  # who put it on the CPU knows what it is given
                if level == "assume" and moved_for_one_use.is_fetched_beside(self, node, off, other):
                    continue
                culprits.append((off, other, level))
        if not culprits:
            return None
        seen: set[Span] = set()
        for off, other, level in culprits:
            if off.span in seen:
                continue
            seen.add(off.span)
            if how == "index" and looked_up.note_first(self, off, other, level):
                continue
            self.note_kept(node, off, other)
            because = (
                *off.value.because[:2],
                Origin(self.span(node), f"meets `{short(other.text)}` on {describe(other.value.device)} here"),
                *other.value.because[:2],
            )
            branch = self.parted(off.value, other.value)
            if branch is not None:
                because = (
                    Origin(self.span(node), f"`{short(off.text)}` meets `{short(other.text)}` here"),
                    *because[:2],
                )
            self.emit_meet(node, how, operation, off, other, level, because, branch, unread)
        return culprits[0][0]

    def note_kept(self, node: ast.expr, off: Operand, other: Operand) -> None:
        """A value that a module of the file keeps, on one path at least, is used with what moves."""
        value = off.value
        entry: Unregistered | None = None
        if value.attribute is not None:
            owner, _, name = value.attribute.rpartition(".")
            class_ = self.classes.get(owner)
            entry = class_.unregistered.get(name) if class_ is not None else None
            if class_ is not None and entry is not None and beside_kept.is_beside(class_, name, entry, other.value):
                return
        elif len(value.made) > 1 and self.owner is not None:
            # made anew on the other path
            kept = {origin.span for origin in value.because if origin.text == KEPT}
            entries = self.owner.unregistered.values() if kept else ()
            entry = next((e for e in entries if self.span(e.target) in kept), None)
        if entry is not None and not self.is_put_there(node, off):
            where = Origin(self.span(node), f"used with `{short(other.text)}` here")
            entry.uses.setdefault(where.span, where)

    def is_put_there(self, node: ast.expr, off: Operand) -> bool:
        """Whether the function itself moved what it put into an entry before: `self.grid[i] = grid.to(x.device)`."""
        return self.function is not None and is_put_before(self.function.node, off.node, node)

    def parted(self, off: Value, other: Value) -> Span | None:
        """The move of one of two values in a branch of a condition that leaves the other one where it was."""
        if off.split is None or other.split is None or off.split[0] != other.split[0]:
            return None
        for pair in zip(off.split[1:], other.split[1:], strict=True):
            if self.conflict_of(*pair) is not None:
                moved = [v.because[0].span for v in pair if v.moved and v.because]
                return moved[0] if len(moved) == 1 else None
        return None

    def emit_meet(
        self,
        node: ast.expr,
        how: How,
        operation: str,
        off: Operand,
        other: Operand,
        level: Conflict,
        because: tuple[Origin, ...],
        branch: Span | None = None,
        unread: bool = False,
    ) -> None:
        entry = restored.entry_of(self.restored, off.value)
        if entry is not None:
            beside = entry.beside(other)
            if beside is not None:
                head = (
                    entry.operand.span,
                    entry.operand.node,
                    restored.meeting(entry, because),
                    self.guards,
                    self.scope(),
                )
                self.emit(Meet(*head, entry.function, "restored", operation, entry.operand, beside, level))
            return
        dropped = off.value.discarded
        if dropped is not None:
            move = self.events.get(("Move", dropped))
            if isinstance(move, Move):
                self.events[("Move", dropped)] = replace(move, used_later=level)
        first, scope = self.loop_of(off.node)
        bound = self.bound_at(off, first)
        event = Meet(
            self.span(node), node, because, self.guards, self.scope(), self.name, how, operation, off, other, level,
            first, scope, branch, bound, unread,
        )  # fmt: skip
        made = off.value.made[0] if off.value.made else None
        # several callers may each give a helper what they made
        self.emit(event, off.span, made.span if made is not None and self.is_of_caller(made) else None)

    def is_of_caller(self, creation: Creation) -> bool:
        """Whether a function that waits for the one that is run made a tensor, and handed it over."""
        around = [f for f in self.stack if self.span(f.node).start <= creation.span.start < self.span(f.node).end]
        return bool(around) and self.stack[-1] not in around

    def bound_at(self, off: Operand, first: Span | None) -> Span | None:
        """Where a part of a batch of the host got its name, `x = Variable(x)`: the place to move it.

        `first`: the body of the loop whose target binds the name as well, if there is one.
        """
        name, value = off.node, off.value
        if not self.loops or not isinstance(name, ast.Name) or not value.because:
            return None
        origin = value.because[-1 if value.type_name == GUESS else 0]  # where what it was computed from is from
        if not origin.text.startswith(HOST_BATCH):
            return None
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        nodes = own.assigns if own is not None else walk(self.scan.tree or ast.Module([], []))
        found = [
            node
            for node in nodes
            if isinstance(node, ast.Assign)
            and node.lineno < name.lineno
            and any(isinstance(n, ast.Name) and n.id == name.id for t in node.targets for n in walk(t))
        ]
        last = self.span(max(found, key=lambda node: node.lineno)) if found else None
        return last if last is not None and (first is None or last.start >= first.start) else None

    def loop_of(self, node: ast.expr) -> tuple[Span | None, Scope]:
        """The enclosing `for` whose target binds this name, if it still holds what the loop gave it."""
        if isinstance(node, ast.Name):
            entry = self.loop_names.get(node.id)
            if entry is not None and self.state.env.get(node.id) is entry[2]:
                return entry[0], entry[1]
        return None, {}

    def _who_is_off(self, i: int, a: Operand, j: int, b: Operand) -> tuple[Operand, Operand, int]:
        """The operand to move first: the one on the CPU, else the later one. Of two that one condition tells apart, the one
        that is on the CPU on the path on which they differ."""
        if a.value.split is not None and b.value.split is not None and a.value.split[0] == b.value.split[0]:
            for x, y in zip(a.value.split[1:], b.value.split[1:], strict=True):
                if CPU_PLACE not in x.device | y.device or self.conflict_of(x, y) is None:
                    continue
                if x.device == y.device or (CPU_PLACE in x.device) is (CPU_PLACE in y.device):
                    break
                return (a, b, i) if CPU_PLACE in x.device else (b, a, j)
        if a.value.device == CPU or (CPU_PLACE in a.value.device and b.value.device != CPU):
            return a, b, i
        return b, a, j

    def combine(self, operands: Sequence[Operand], zero_dim: bool | None = None) -> Value:
        """The tensor that an operation on these tensors gives."""
        values = [o.value for o in operands]
        if not values:
            return Value("tensor", UNKNOWN, zero_dim)
        if len(values) == 1:
            only = values[0]
            dim = zero_dim if zero_dim is not None else None
            if only.kind == "tensor" and only.zero_dim is dim and not only.attribute and not only.split:
                return only
            return Value(
                "tensor", only.device, dim, because=only.because, made=only.made, attribute=only.attribute,
                type_name=only.type_name if only.type_name in (BATCH, GUESS) else None, split=of_sides(only, dim),
            )  # fmt: skip
        chosen = self._dominant(values)
        if zero_dim is None:
            if any(v.zero_dim is False for v in values):
                zero_dim = False
            elif all(v.zero_dim is True for v in values):
                zero_dim = True
        made: tuple[Creation, ...] = ()
        attribute = None
        if CPU_PLACE in chosen.device and all(v.device == chosen.device for v in values):
            if all(v.made for v in values):
                made = tuple(dict.fromkeys(c for v in values for c in v.made))
            if chosen.device == CPU:
                attribute = next((v.attribute for v in values if v.attribute), None)
        guessed = GUESS if all(v.type_name == GUESS for v in values) else None
        return Value(
            "tensor", chosen.device, zero_dim, because=chosen.because, made=made, attribute=attribute, type_name=guessed,
            split=of_common_sides(values, chosen, zero_dim) if chosen.split is not None else None,
        )  # fmt: skip

    def _dominant(self, values: Sequence[Value]) -> Value:
        """The value whose device the result takes: the accelerator's where a CPU scalar meets one."""
        first = values[0]
        if all(v.device == first.device for v in values):
            return first
        if any(not v.device for v in values):
            # where the operation works, what is not known is with the others, or is a scalar
            named = [v for v in values if v.zero_dim is not True and is_one_accelerator(v.device)]
            named = [v for v in named if v.zero_dim is False or not is_surely_accelerator(v.device)]
            if named and all(v.device == named[0].device for v in named):
                return named[0]
            return replace(first, device=UNKNOWN, made=())
        rest = [v for v in values if v.device != CPU]
        sure = [v for v in rest if CPU_PLACE not in v.device] or rest
        if sure and all(v.device == sure[0].device for v in sure):
            # what is on the CPU as well on some path must be with the others when the operation works
            if all(v.device <= sure[0].device | CPU for v in rest):
                return sure[0]
        return replace(first, device=UNKNOWN, made=())

    def work(self, node: ast.AST, what: str, device: Device) -> None:
        """Note device work for the timing facts, when the device is or may be an accelerator."""
        if self.host or not may_be_accelerator(device) or "accelerator" in self.guards.fails:
            return
        if "cuda" in self.guards.fails:
            return
        sure = is_surely_accelerator(device)
        type = None
        if len(device) == 1:
            (place,) = device
            type = place.type if isinstance(place, Place) else None
        self.queue(node, what, "certain" if sure else "assume", type)


def is_brought_to_host(value: Value) -> bool:
    """Whether a value was moved to the CPU in so many words, and may have dimensions."""
    moved = value.moved or (bool(value.because) and value.because[0].text.startswith(f"moved to {describe(CPU)}"))
    return moved and value.device == CPU and value.zero_dim is not True


def is_at(operand: Operand, owner: Operand) -> bool:
    """Whether an operand is on the `.device` of the other one, by name: `x.to(model.device)` beside `model`."""
    return any(isinstance(place, Symbol) and place.name == f"{owner.text}.device" for place in operand.value.device)


def of_sides(value: Value, zero_dim: bool | None) -> tuple[str, Value, Value] | None:
    """What an operation on one tensor gives on each of two paths, where one of them makes it on the CPU."""
    if value.split is None or not (value.split[1].made or value.split[2].made):
        return None
    key, first, second = value.split
    if not first.is_tensor or not second.is_tensor:
        return None
    return key, replace(first, kind="tensor", zero_dim=zero_dim), replace(second, kind="tensor", zero_dim=zero_dim)


def of_common_sides(values: Sequence[Value], chosen: Value, zero_dim: bool | None) -> tuple[str, Value, Value] | None:
    """`of_sides` for tensors that one condition tells apart in the same way: `x / x.max()`."""
    sides = of_sides(chosen, zero_dim)
    if sides is None:
        return None
    for value in values:
        if value.split is None or value.split[0] != sides[0]:
            return None
        if any(mine.device != its.device for mine, its in zip(value.split[1:], sides[1:], strict=True)):
            return None
    return sides


def is_encoded(value: Value) -> bool:
    """Whether a value is what a tokenizer has just made, or a part of it: no loader puts that anywhere."""
    return value.device == CPU and bool(value.because) and value.because[0].text == ENCODED


def is_of_batch(value: Value) -> bool:
    """Whether a value is a part of what a loader gives from host memory, or computed from that."""
    return bool(value.because) and value.because[0].text.startswith(HOST_BATCH)


def is_of_host(value: Value) -> bool:
    """Whether a tensor comes from the host: from a data set, or by a move; not from a factory that may be told a device."""
    return value.kind == "tensor" and value.device == CPU and value.zero_dim is False and not value.made


def is_put_beside_guess(off: Operand, other: Value) -> bool:
    """Whether the expression takes one operand to the CPU, and the other is what an unknown function computed.

    Who wrote it knew that function.
    """
    if not other.because or other.because[0].text != COMPUTED or CPU_PLACE not in off.value.device:
        return False
    return any(isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "cpu" for n in ast.walk(off.node))


def is_one_accelerator(device: Device) -> bool:
    """Whether a device is one place that is, or may be, an accelerator, and not merely that of some other object."""
    return len(device) == 1 and may_be_accelerator(device) and not any(str(p).endswith(".device") for p in device)


def short(text: str, limit: int = 40) -> str:
    """A source text on one line, cut to `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def has_no_items(value: Value) -> bool:
    """Whether a value has no dimension where it is on the CPU: too many indices, before any device is looked at
    [aten/src/ATen/TensorIndexing.h, torch/csrc/autograd/python_variable_indexing.cpp]."""
    if value.zero_dim is None and len(value.device) > 1 and value.made:
        return all(creation.zero_dim is True for creation in value.made)
    return value.zero_dim is True
