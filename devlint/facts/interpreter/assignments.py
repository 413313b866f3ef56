"""Assignments: what names, attributes, elements and unpacked targets hold from here on."""

from __future__ import annotations

import ast
from typing import cast

from devlint.facts.frozen import replace
from devlint.facts.idioms import (
    added_losses,
    arrays,
    batches,
    beside_arrays,
    grown_lists,
    guesses,
    lists_in_dicts,
    moved_off_cpu,
    parts_of_arguments,
    rows,
    unplaced,
)
from devlint.facts.idioms import guards as conditions
from devlint.facts.idioms.devices import parse_device
from devlint.facts.idioms.tables import dimensions
from devlint.facts.interpreter.operations import CPU_PLACE, TURN
from devlint.facts.interpreter.operators import OPERATORS
from devlint.facts.interpreter.subscripts import is_index
from devlint.facts.interpreter.timing import Timing, timing_magic
from devlint.facts.text import reads
from devlint.facts.text.references import chain, is_self_attribute
from devlint.facts.text.signs import gives_tensors
from devlint.facts.values import (
    BATCH,
    CPU,
    GUESS,
    MAYBE_CPU,
    NOTHING,
    UNKNOWN,
    Device,
    Symbol,
    Value,
    describe,
    extent,
    may_be_accelerator,
    merge,
    symbol,
)
from devlint.model import Origin


class Assignments(Timing):
    """Adds `assign_target` and the statements that bind."""

    def assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call):
            if not any(isinstance(part, ast.Starred) for part in target.elts):
                self.taken_apart[node.value] = len(target.elts)
        value = self.evaluate(node.value)
        if value.kind in ("event", "tuple"):
            self.note_events(node)
        elif value.kind in ("list", "dict", "object") and value.elements is not None and is_alias(node):
            # two names for one container: what one of them changes the other sees
            value = replace(value, elements=None)
            self.bind(self.text(node.value), value)
        source = node.value
        asks = isinstance(source, (ast.BoolOp, ast.Compare)) or (
            isinstance(source, ast.Attribute) and source.attr == "is_cuda"
        )
        if asks and value.type_name is None and not value.is_tensor:
            condition = conditions.read(node.value, self.qualify, self.asked, self.text)
            if condition.when:  # `wait = step > 0 and device.type == "cuda"`: a later `if wait` is a guard
                value = moved_off_cpu.flag(self, node, condition)
        if self.function is None and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "pytestmark":
            marks = self.text(node.value).lower()
            self.file_holds |= {type for type in ("cuda", "xpu", "mps", "npu") if type in marks}
        stated = self.intents.get(node.end_lineno or 0) or self.intents.get(node.lineno) if self.intents else None
        if stated is not None:
            value = self.intended(value, stated, node)
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Call) and is_blank(value):
            value = batches.unpacked(self, node) or value
        for target in node.targets:
            self.assign_target(target, value, node.value, node)
            if value.kind == "list" and self.in_init and isinstance(target, ast.Name):
                grown_lists.made(self, target.id, node.value, value)
            if value.kind == "list" and self.in_init and self.owner is not None and is_self_attribute(target):
                parts = grown_lists.of_name(self, node.value)
                if parts and isinstance(target, ast.Attribute):
                    whole = Value("list", elements=parts)
                    self.register(self.owner, target.attr, whole, target, node.value, node)

    def intended(self, value: Value, stated: str, node: ast.Assign) -> Value:
        """`# devlint: device=cpu`: the author says where the value is, and is believed."""
        device = parse_device(stated)
        if not device:
            known = self.lookup(stated)
            device = known.device if known is not None and known.device else symbol(stated, 0)
        kind = value.kind if value.is_tensor or value.kind in ("module", "device") else "tensor"
        origin = Origin(self.span(node), f"stated to be on {describe(device)} by a comment here")
        return replace(value, kind=kind, device=device, because=(origin,), made=(), moved=True, split=None)

    def note_events(self, node: ast.Assign) -> None:
        """`start = torch.cuda.Event(...)`: the name stands for this very event, and nobody else has it yet."""
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if len(names) == len(values):
                for name, value in zip(names, values, strict=True):
                    if isinstance(name, ast.Name) and isinstance(value, ast.Call):
                        self.event_names.add(name.id)

    def annotated(self, node: ast.AnnAssign) -> None:
        magic = timing_magic(node)
        if magic is not None:
            self.timed_by_magic(node, magic)
        elif node.value is not None:
            value = parts_of_arguments.stated(self, node, self.evaluate(node.value))
            self.assign_target(node.target, value, node.value, node)

    def is_made_of_itself(self, name: str, source: ast.expr | None) -> bool:
        """Whether a name that holds one tensor is bound to what an imported function makes of it: `x = repeat(x, 3)`."""
        if not isinstance(source, ast.Call) or not source.args:
            return False
        *_, root = chain(source.func)
        given = source.args[0]
        imported = isinstance(root, ast.Name) and root.id in self.imports.names
        same = isinstance(given, ast.Name) and given.id == name
        return imported and same and self.state.env.get(name, NOTHING).kind == "tensor"

    def assign_target(
        self, target: ast.expr, value: Value, source: ast.expr | None, statement: ast.stmt | None = None
    ) -> None:
        if isinstance(target, ast.Name):
            if value.type_name == GUESS and self.function is not None:
                value = self.evidence_of(self.function).settled(target.id, value)
                if guesses.is_guess(value) and guesses.names_file(target.id):
                    value = NOTHING
                if guesses.is_guess(value) and self.is_made_of_itself(target.id, source):
                    value = guesses.tensor(value)
            elif value.kind == "unknown":
                value = parts_of_arguments.used(self, target, source, value)
            self.bind(target.id, self.named(target.id, value, target))
            lists_in_dicts.bound(self, target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value, source, statement)
        elif isinstance(target, ast.Attribute):
            self.assign_attribute(target, value, source, statement)
        elif isinstance(target, ast.Subscript):
            self.assign_item(target, value, source)
        elif isinstance(target, ast.Starred):
            self.assign_target(target.value, value if value.kind == "list" else NOTHING, None, statement)

    def named(self, path: str, value: Value, target: ast.expr) -> Value:
        """A device that the code chooses gets a name: from here on it is the device of that variable."""
        kind, device = value.kind, value.device
        if kind not in ("device", "string"):
            return value
        chosen = (value.type_name or "").startswith(("chosen", "index:"))
        unnamed = len(device) != 1 or is_abroad(device) or value.type_name == "chosen:accelerator"
        if (chosen or kind == "device") and unnamed:
            return replace(value, device=symbol(path, self.span(target).start))
        return value

    def unpack(
        self, target: ast.Tuple | ast.List, value: Value, source: ast.expr | None, statement: ast.stmt | None
    ) -> None:
        elements = value.elements if isinstance(value.elements, tuple) and value.kind in ("tuple", "list") else None
        star = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), None)
        for index, element in enumerate(target.elts):
            if elements is not None and star is None and len(elements) == len(target.elts):
                given = elements[index]
            elif elements is not None and star is not None and len(elements) >= len(target.elts) - 1:
                behind = len(target.elts) - 1 - star
                if index == star:
                    given = Value("list", elements=elements[star : len(elements) - behind])
                else:
                    given = elements[index if index < star else index - len(target.elts)]
            elif value.kind in ("tensors", "tensor") or value.type_name in ("comprehension", "zip", GUESS):
                given = self.element(value)
                if (
                    value.kind == "tensor"
                    and given.kind == "tensor"
                    and given.zero_dim is None
                    and given.type_name is None
                ):
                    given = replace(given, type_name=TURN)  # of a row: no dimension may be left
                if (value.type_name == GUESS or value.kind == "tensors") and batches.reads_like_count(element):
                    given = NOTHING
                if value.kind == "tensors" and given.kind == "tensors" and source is not None and gives_tensors(source):
                    given = replace(given, kind="tensor")
                if index == star:
                    given = rows.listed("list", given)
            elif value.type_name == "size":
                given = value if isinstance(element, ast.Starred) else extent(value, str(value.constant))
            else:
                given = NOTHING
            self.assign_target(element, given, of_pair(source, target, index), statement)

    def assign_attribute(
        self, target: ast.Attribute, value: Value, source: ast.expr | None, statement: ast.stmt | None
    ) -> None:
        path = self.path(target)
        if path is None:
            self.evaluate(target.value)
            return
        if target.attr == "data" and self.assign_data(target.value, value):
            return
        value = self.named(path, value, target)
        if value.kind == "module" and source is not None:
            self.give(source, value)
        if value.is_tensor or value.kind == "module":
            self.spoil_owners(path, value)
        again = path in self.state.env
        if path.startswith("self.") and path.count(".") > 1 and source is not None and not self.in_init:
            if self.owner is not None and self.owner.is_module:
                self.leave(source, value, "kept")  # for a part of the module, which computes with it
        self.bind(path, value)
        if path.startswith("self.") and path.count(".") == 1 and self.owner is not None:
            self.register(self.owner, target.attr, value, target, source, statement)
            entry = self.owner.unregistered.get(target.attr)
            if again and self.in_init and entry is not None:
                entry.reassigned = True

    def assign_data(self, node: ast.expr, value: Value) -> bool:
        """`x.data = y`: a tensor takes over y's memory, and with it y's device. False: x is known to be no tensor."""
        base = self.path(node)
        known = self.lookup(base) if base is not None else None
        if known is not None and not known.is_tensor and not value.is_tensor:
            return False
        if base is not None and known is not None and known.is_tensor:
            made, dim = (value.made, value.zero_dim) if value.is_tensor else ((), known.zero_dim)
            self.bind(base, replace(known, device=value.device, because=value.because, made=made, zero_dim=dim))
            self.spoil_aliases(base, known)
        if base is not None:
            self.spoil_owners(base, value)
        if known is not None and known.type_name == "borrowed":
            # `for p in model.parameters(): p.data = ...` moves the model piece by piece
            for other, module in self.state.env.items():
                if module.kind == "module" and module.device != value.device:
                    self.state.env[other] = replace(module, device=UNKNOWN)
        return True

    def spoil_aliases(self, path: str, value: Value) -> None:
        """A tensor's data is exchanged: other names and containers of the very tensor are no longer where they were."""
        env = self.state.env
        for other, known in env.items():
            if known is value and other != path:
                env[other] = replace(known, device=UNKNOWN, made=())
            elif isinstance(known.elements, tuple) and any(e is value for e in known.elements):
                env[other] = replace(known, elements=None)

    def assign_item(self, target: ast.Subscript, value: Value, source: ast.expr | None) -> None:
        base = self.evaluate(target.value)
        index = self.evaluate(target.slice)
        if base.is_tensor and base.kind != "tensors":
            receiver = self.operand(target.value, base)
            nodes = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            parts = list(index.elements) if isinstance(index.elements, tuple) and index.kind == "tuple" else [index]
            if len(nodes) < dimensions(base):
                value = guesses.tensor(value)  # what a part of a table is made of is no number
            pairs = [(n, v) for n, v in zip(nodes, parts, strict=False) if is_index(v) and not self.is_item(n, v)]
            indices = [self.operand(n, v) for n, v in pairs]
            spread = bool(indices) or any(map(arrays.takes_several, nodes, parts))
            kept_there = base.device == CPU or (base.device == MAYBE_CPU and is_self_attribute(target.value))
            if value.is_tensor and source is not None and base.made and kept_there:
                other = self.operand(source, value)
                level = self.conflict(CPU, value.device)
                kept = not spread and value.zero_dim is not True and not self.is_counter(target)
                if level is not None and kept and self.fills_for_device(target, value) and self.stays_behind(value):
                    because = (*base.because[:1], Origin(self.span(target), "filled from an accelerator here"))
                    self.emit_meet(target, "copy", "slice assignment", receiver, other, level, because)
            for creation in base.made:
                if value.is_tensor and len(nodes) == 1 and isinstance(target.value, ast.Subscript):
                    self.itemized.add(creation.span)
                is_number = (
                    value.kind in ("number", "bool") or getattr(getattr(source, "func", None), "attr", "") == "item"
                )
                self.counted[creation.span] = self.counted.get(creation.span, True) and is_number
            if indices:
                if CPU_PLACE not in base.device:
                    # into a CPU tensor the indices are brought along: make_info's ensure_same_device
                    # [aten/src/ATen/native/TensorAdvancedIndexingUtils.h]
                    self.meet(target, unplaced.beside(self, [receiver, *indices]), "index", "index", "index")
            copied = value.zero_dim is True or has_one_element(value)
            if not indices and value.zero_dim is None and not isinstance(source, ast.Call):
                copied = True  # a product may have no dimension; what a module gives has one
            if spread and source is not None and value.is_tensor and not copied:
                written = unplaced.beside(self, [receiver, self.operand(source, value)])
                self.meet(target, written, "index", "index assignment", "scalar")
            return
        beside_arrays.note_store(self, target, base, value, source)
        path = self.path(target)
        if base.kind == "list" and source is not None:
            self.note_left_over(target, base, value, source)
        if base.kind == "tensors" and (path is None or (base.type_name == BATCH and value.is_tensor)):
            whole = self.path(target.value)
            if whole is not None:
                self.bind(whole, NOTHING)
            if path is not None:
                self.bind(path, value)
            return
        if source is not None and base.kind != "list":
            self.leave(source, value, "kept")
        container = self.path(target.value)
        if path is not None:
            self.bind(path, value)
            key = target.slice.value if isinstance(target.slice, ast.Constant) else None
            if base.kind == "dict" and isinstance(base.elements, dict) and container in self.state.env:
                if isinstance(key, str) and key in base.elements:  # what stood there before is gone
                    self.state.env[container] = replace(base, elements={**base.elements, key: value})
            if base.kind == "dict" and container is not None and container.startswith("self.") and self.owner:
                if source is not None:
                    self.grow(self.owner, container[5:], value, target, source)
            return
        if container is not None and base.kind in ("list", "dict", "tuple"):
            known = self.element(base) if isinstance(base.elements, tuple) else None
            if isinstance(base.elements, dict):
                known = base.elements.get("*")
            kept = isinstance(base.elements, tuple) and any(e.attribute is not None for e in base.elements)
            if base.kind == "list" and kept and value.is_tensor and isinstance(base.elements, tuple):
                if not self.guards.tests:  # else some of the plain tensors stay
                    self.state.env[container] = replace(base, elements=None)
            elif value.kind == "module" or known is not None or any(v.is_tensor for v in rows.parts(value)):
                several = value if known is None else merge(known, value)
                if rows.differ(known, value):
                    several = NOTHING  # the lists of one kind may have been replaced by those of the other
                self.state.env[container] = replace(base, kind="dict", elements={"*": several})
                if container.startswith("self.") and self.owner is not None and source is not None:
                    self.grow(self.owner, container[5:], value, target, source)

    def fills_for_device(self, target: ast.Subscript, value: Value) -> bool:
        """Whether a CPU tensor that is filled with this value is likely meant to be where the value is.

        In a module's `forward`, in the state of a module, and in a function on annotated tensors that works with
        torch alone. Elsewhere results are collected on the host on purpose, for the most part.
        """
        if self.owner is not None and self.owner.is_module and not self.in_init and is_self_attribute(target.value):
            return True  # a module's state
        if self.in_forward or self.function is None or self.owner is not None:
            return self.in_forward
        if not self.callers.is_pure_in(self.function):
            return False
        assumed = self.assumed.get(value.because[0].span) if value.because else None
        evidence = self.evidence.get(id(assumed[0].node)) if assumed is not None else None
        if assumed is None or evidence is None:
            return False
        return assumed[1] in evidence.annotated | evidence.several | evidence.documented

    def is_counter(self, target: ast.Subscript) -> bool:
        """Whether what is written into is a local tensor that the host alone reads, as numbers."""
        if not isinstance(target.value, ast.Name):
            return False
        scope = self.function.node if self.function is not None else self.scan.tree
        return scope is not None and reads.only_on_host(scope, target.value.id)

    def note_left_over(self, target: ast.Subscript, base: Value, value: Value, source: ast.expr) -> None:
        """`rows = [torch.zeros(0, 6)] * n` and in a loop that may `continue` first `rows[i] = found`: some stay on the CPU."""
        if not (self.loops and self.continues and self.continues[-1]) or not isinstance(base.elements, tuple):
            return
        if len(base.elements) != 1 or not value.is_tensor or value.zero_dim is True:
            return
        new = base.elements[0]
        if new.is_tensor and new.made and new.device == CPU and new.zero_dim is False:
            level = self.conflict(CPU, value.device)
            if level is not None:
                other = self.operand(source, value)
                because = (
                    *new.because[:1],
                    Origin(self.span(target), "sometimes replaced by a tensor on an accelerator here"),
                )
                self.emit_meet(target, "kept", "list", self.operand(target.value, new), other, level, because)

    def augmented(self, node: ast.AugAssign) -> None:
        value = self.evaluate(node.value)
        target = node.target
        current = self.evaluate(target) if not isinstance(target, ast.Name) else self.name_(target)
        if current.kind == "tensors" and value.kind == "list":
            self.assign_target(target, NOTHING, None)  # a list whose items were moved gets others
            return
        if current.is_tensor:
            operands = [self.operand(target, current)]
            value = added_losses.added(self, node.value, value, current)
            if value.is_tensor:
                operands.append(self.operand(node.value, value))
                symbol_ = f"{OPERATORS.get(type(node.op), '+')}="
                self.meet(node_expr(node), unplaced.beside(self, operands), "inplace", symbol_, "scalar", 0)
                if isinstance(target, ast.Name) and current.type_name == GUESS and value.device == current.device:
                    if value.type_name != GUESS and may_be_accelerator(value.device):
                        self.state.env[target.id] = replace(current, type_name=None)  # a number no longer
            self.work(node, "an operation is queued here", current.device)
            return
        if value.device == CPU and current.kind == "unknown" and isinstance(target, ast.Attribute):
            self.assign_target(target, NOTHING, None)  # where it was before decides
            return
        if value.is_tensor and value.device == CPU and current.kind == "unknown":
            if self.may_leave(self.operand(node.value, value)):
                self.assign_target(target, NOTHING, None)
                return
        if value.is_tensor or current.kind == "number":
            # `total = 0; total += loss`: from the first time on it is a tensor
            kept = False if value.zero_dim is False else None  # broadcasting takes no dimension away
            if current.kind == "number" and value.zero_dim is True:
                kept = True
            counts = (current.type_name or "").endswith("device_count")  # what is added to it counts no cards
            current = replace(current, type_name=None) if counts else current
            result = self.combine([self.operand(node.value, value)], kept) if value.is_tensor else current
            self.assign_target(target, result, None)
            return
        if current.kind == "list" and value.kind == "list":
            path = self.path(target)
            for element in value.elements if isinstance(value.elements, tuple) else (self.element(value),):
                known = self.lookup(path) if path is not None else None
                if path is not None and known is not None:
                    self.append(path, known, element)
            return
        self.assign_target(target, NOTHING, None)

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            path = self.path(target)
            if path is not None:
                self.state.env.pop(path, None)
            if isinstance(target, ast.Subscript):
                self.forget_elements(self.path(target.value))


def of_pair(source: ast.expr | None, target: ast.Tuple | ast.List, index: int) -> ast.expr | None:
    """What an attribute of `self` gets in `self.a, self.b = torch.ones(3), []`, a part of what the whole gives in
    `self.x, self.y = torch.meshgrid(a, b)`, and `x` in `x, y = data.x, data.y`; None for what else a name gets."""
    own = is_self_attribute(target.elts[index])
    if not isinstance(source, (ast.Tuple, ast.List)) or len(source.elts) != len(target.elts):
        return source if own and isinstance(source, ast.Call) else None
    part = source.elts[index]
    return part if own or isinstance(part, ast.Attribute) else None


def has_one_element(value: Value) -> bool:
    """Whether a tensor was made with one element of the CPU: it is filled in as a number, wherever the mask is.

    [aten/src/ATen/native/TensorAdvancedIndexing.cpp, canDispatchToMaskedFill]
    """
    if len(value.made) != 1 or not value.made[0].node.args:
        return False
    first = value.made[0].node.args[0]
    if value.made[0].function == "torch.tensor":
        return isinstance(first, ast.List) and len(first.elts) == 1 and not isinstance(first.elts[0], ast.List)
    return isinstance(first, ast.Constant) and first.value == 1 and len(value.made[0].node.args) == 1


def is_abroad(device: Device) -> bool:
    """Whether a device has a name in another file only."""
    return any(isinstance(place, Symbol) and place.scope < 0 for place in device)


def is_alias(node: ast.Assign) -> bool:
    """`a = b`: a second name for one object."""
    return isinstance(node.value, ast.Name) and all(isinstance(t, (ast.Name, ast.Attribute)) for t in node.targets)


def node_expr(node: ast.AugAssign) -> ast.expr:
    """An augmented assignment as the node of an event: it has the span of the statement."""
    return cast(ast.expr, node)


def is_blank(value: Value) -> bool:
    """Whether nothing is known of a value, nor of any of its parts."""
    parts = value.elements if value.kind == "tuple" and isinstance(value.elements, tuple) else (value,)
    return all(part.kind == "unknown" and not part.device for part in parts)
