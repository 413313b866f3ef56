"""Statements, branches and loops: the control flow of the device analysis."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, cast

from devlint.facts import batches, callers, converted, grown_lists, guesses, reads, rows, turns
from devlint.facts import guards as conditions
from devlint.facts.api_calls import note_truth
from devlint.facts.callers import chain, is_self_attribute, last_name, moves
from devlint.facts.devices import parse_device
from devlint.facts.events import Guards
from devlint.facts.frozen import replace
from devlint.facts.machine import State, join_states
from devlint.facts.nodes import walk
from devlint.facts.operations import BATCH, CPU_PLACE, symbol
from devlint.facts.operators import OPERATORS
from devlint.facts.options import last_option
from devlint.facts.subscripts import is_index
from devlint.facts.timing import Timing, timing_magic
from devlint.facts.values import (
    CPU,
    GROWN,
    GUESS,
    MAYBE_CPU,
    NONE,
    NOTHING,
    UNKNOWN,
    Device,
    Symbol,
    Value,
    describe,
    either,
    extent,
    grown,
    is_surely_accelerator,
    may_be_accelerator,
    merge,
)
from devlint.model import Origin

PASSES = 6  # over a loop's body, at most; two or three are the rule


#: Errors of a version without a name: what handles them is for that version.
_LACKS = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})


def brings_together(node: ast.If) -> bool:
    """Whether an `if` moves a tensor where its device differs: `if a.device != b.device: a = a.to(b.device)`."""
    test = node.test
    wanted: type[ast.cmpop] = ast.NotEq
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, ast.Eq
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], wanted) or node.orelse:
        return False
    sides = [s.value for s in (test.left, test.comparators[0]) if isinstance(s, ast.Attribute) and s.attr == "device"]
    names = {last_name(side) for side in sides} - {""}
    if len(sides) != 2 or len(node.body) != 1 or not isinstance(node.body[0], ast.Assign):
        return False
    assigned = node.body[0]
    moved = any(isinstance(part, ast.Call) and moves(part) for part in chain(assigned.value))
    return moved and len(assigned.targets) == 1 and last_name(assigned.targets[0]) in names


class Flow(Timing):
    """The whole interpreter."""

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Run statements in order; a guard that ends with `return` or `raise` holds for the rest of the block."""
        saved = self.guards
        for statement in statements:
            if self.state.dead:
                break
            self.step(statement)
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                try:
                    handler(self, statement)
                except RecursionError:
                    self.facts.too_deep.append(self.span(statement))
        self.guards = saved

    def assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        if value.kind in ("event", "tuple"):
            self.note_events(node)
        elif value.kind in ("list", "dict", "object") and value.elements is not None and is_alias(node):
            # two names for one container: what one of them changes the other sees
            value = replace(value, elements=None)
            self.bind(self.text(node.value), value)
        if isinstance(node.value, (ast.BoolOp, ast.Compare)) and value.type_name is None and not value.is_tensor:
            condition = conditions.read(node.value, self.qualify, self.asked, self.text)
            if condition.when:  # `wait = step > 0 and device.type == "cuda"`: a later `if wait` is a guard
                value = Value("bool", type_name=conditions.FLAG + ",".join(sorted(condition.when)))
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
            self.assign_target(node.target, self.evaluate(node.value), node.value, node)

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
                if guesses.is_guess(value) and self.is_made_of_itself(target.id, source):
                    value = guesses.tensor(value)
            self.bind(target.id, self.named(target.id, value, target))
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
                if (value.type_name == GUESS or value.kind == "tensors") and batches.reads_like_count(element):
                    given = NOTHING
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
            self.bind(base, replace(known, device=value.device, because=value.because))
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
            kept_there = base.device == CPU or (base.device == MAYBE_CPU and is_self_attribute(target.value))
            if value.is_tensor and source is not None and base.made and kept_there:
                other = self.operand(source, value)
                level = self.conflict(CPU, value.device)
                kept = not indices and value.zero_dim is not True and not self.is_counter(target)
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
                    self.meet(target, [receiver, *indices], "index", "index", "index")
                if source is not None and value.is_tensor and not has_one_element(value):
                    self.meet(target, [receiver, self.operand(source, value)], "index", "index assignment", "scalar")
            return
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
            elif value.kind == "module" or value.is_tensor or known is not None:
                elements = {"*": value if known is None else merge(known, value)}
                self.state.env[container] = replace(base, kind="dict", elements=elements)
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
                because = (*new.because[:1], Origin(self.span(target), "replaced by an accelerator's here, not always"))
                self.emit_meet(target, "kept", "list", self.operand(target.value, new), other, level, because)

    def augmented(self, node: ast.AugAssign) -> None:
        value = self.evaluate(node.value)
        target = node.target
        current = self.evaluate(target) if not isinstance(target, ast.Name) else self.name_(target)
        if current.is_tensor:
            operands = [self.operand(target, current)]
            if value.is_tensor:
                operands.append(self.operand(node.value, value))
                symbol_ = f"{OPERATORS.get(type(node.op), '+')}="
                self.meet(node_expr(node), operands, "inplace", symbol_, "scalar", 0)
            self.work(node, "an operation is queued here", current.device)
            return
        if value.device == CPU and current.kind == "unknown" and isinstance(target, ast.Attribute):
            self.assign_target(target, NOTHING, None)  # where it was before decides
            return
        if value.is_tensor or current.kind == "number":
            # `total = 0; total += loss`: from the first time on it is a tensor
            kept = False if value.zero_dim is False else None  # broadcasting takes no dimension away
            if current.kind == "number" and value.zero_dim is True:
                kept = True
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

    def expression(self, node: ast.Expr) -> None:
        self.statement_value = node.value
        self.evaluate(node.value)
        self.statement_value = None
        if isinstance(node.value, ast.Call) and ends_the_run(node.value.func):
            self.state.dead = True

    def if_(self, node: ast.If) -> None:
        self.steps += len(self.state.env) >> 3
        condition = conditions.read(node.test, self.qualify, self.asked, self.text)
        chosen = self.moves_by_test(node)
        if chosen is not None:
            (condition.unless_not if chosen else condition.when_not).add("accelerator")
        test = self.evaluate(node.test)
        note_truth(self, node.test)
        if test.is_tensor:
            self.wait_for(test)
        told = self.told_by_turn(node.test)
        if told is not None:
            self.block(node.body if told else node.orelse)
            return
        if brings_together(node):
            self.block(node.body)  # on the other path both are on one device already
            return
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and (option := last_option(node)) is not None:
            self.last_options[id(option[0])] = option[1]
        entry, guards = self.state, self.guards
        taken = self.decided(node.test)
        then = entry.copy()
        self.state = then
        self.guards = self.under(condition)
        self.refine(condition.key)
        self.none_here(node.test, True)
        on_cpu = self.place(condition.on_cpu, condition.has_device) | self.no_tensors(condition.no_tensor)
        self.tensors_here(condition.else_no_tensor)
        converted.ahead(self, condition.else_no_tensor, node.orelse)
        returned = len(self.returns)
        self.block(node.body)
        then = self.state
        if taken is False:
            then.dead = True  # what it does is looked at, but this call does not come here
            del self.returns[returned:]
        returned = len(self.returns)
        self.state = otherwise = entry.copy()
        negated = condition.negated()
        self.guards = guards
        self.guards = self.under(negated)
        self.refine(negated.key)
        self.none_here(node.test, False)
        off_card = self.place(condition.else_on_cpu, condition.has_device) | self.no_tensors(condition.else_no_tensor)
        self.tensors_here(condition.no_tensor)
        converted.ahead(self, condition.no_tensor, node.body if node.orelse else [])
        if condition.unless_not or (only_calls(node.body) and then.work is None):
            # there is no device here, or the program itself says so by waiting in the other branch alone
            otherwise.work = None
            otherwise.recorded = {path: (span, True) for path, (span, _) in otherwise.recorded.items()}
        self.block(node.orelse)
        otherwise = self.state
        for name in self.last_options.get(id(node), ()):
            before, after = entry.env.get(name), then.env.get(name)
            if before is not None and before.made and after is not None:
                otherwise.env[name] = after  # what was made before the options only stands for what each of them binds
        if self.surely_elsewhere(condition.on_cpu, entry):
            then.dead = True
        elif self.surely_elsewhere(condition.else_on_cpu, entry):
            otherwise.dead = True
        if taken is True:
            otherwise.dead = True
            del self.returns[returned:]
        self.guards = guards
        restore(then, otherwise, on_cpu)
        restore(otherwise, then, off_card)
        if then.dead and not otherwise.dead:
            self.guards = self.under(negated)
        elif otherwise.dead and not then.dead:
            self.guards = self.under(condition)
        if condition.no_tensor or condition.else_no_tensor:
            converted.settle(self, condition, then, otherwise)
        key = condition.key
        if not self.remember(key, node.test):
            # a condition that an equal one does not repeat still tells which values belong together
            key = f"{key} @{self.span(node).start}"
        self.state = join_states(then, otherwise, key)
        rows.grown_on_both(self.state, entry, then, otherwise, condition.key, self.loops > 0)
        self.join_attributes(then, otherwise)
        self.choose_devices(then, otherwise, condition, node)
        if not then.dead and not otherwise.dead and (condition.when or callers.asks_for_card(node.test)):
            self.bound_by_availability(then, otherwise)
            self.bound_by_availability(otherwise, then)
        if condition.else_on_cpu and not then.dead and not otherwise.dead:
            for path, value in list(self.state.env.items()):
                if path in then.env and path in otherwise.env:
                    self.state.env[path] = self.along(value, then.env[path], otherwise.env[path], condition)

    def none_here(self, test: ast.expr, holds: bool) -> None:
        """The branch of `if weight is None:` in which the parameter is None: there it is no tensor."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
            return
        right, name = test.comparators[0], test.left.id
        if not isinstance(right, ast.Constant) or right.value is not None or not self.is_parameter(name):
            return
        known = self.state.env.get(name)
        if isinstance(test.ops[0], ast.Is if holds else ast.IsNot) and known is not None:
            if known.kind in ("tensor", "unknown") and not known.made:
                self.state.env[name] = NONE

    def join_attributes(self, then: State, otherwise: State) -> None:
        """An attribute of `self` that one branch binds to a new tensor is, after the other one, what it was."""
        if self.owner is None or self.in_init or then.dead or otherwise.dead:
            return
        for one, other in ((then.env, otherwise.env), (otherwise.env, then.env)):
            for path, value in one.items():
                if value.made and path.startswith("self.") and path not in other and path[5:].isidentifier():
                    before = self.owner.attribute(path[5:])
                    self.state.env[path] = either(value, before if before is not None else NOTHING)

    def moves_by_test(self, node: ast.If) -> bool | None:
        """Which branch of `if rank is not None: x = x.cuda(rank)` is for an accelerator: the one that moves by what is tested.

        The other one then runs where there is none. None when neither branch, or both, do so.
        """
        if not node.orelse:
            return None
        test, holds = node.test, True
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        if isinstance(test, ast.Compare):
            right = test.comparators[0]
            if len(test.ops) != 1 or not isinstance(right, ast.Constant) or right.value is not None:
                return None
            holds = holds is isinstance(test.ops[0], (ast.IsNot, ast.NotEq))
            test = test.left
        path = self.path(test)
        if path is None or not (callers.asks_for_card(test) or "rank" in path):
            return None
        branches = [any(moves_by(n, path) for s in body for n in walk(s)) for body in (node.body, node.orelse)]
        return holds if branches == [holds, not holds] else None

    def bound_by_availability(self, then: State, otherwise: State) -> None:
        """What was moved where there is an accelerator stays on the CPU only where there is none: nothing is off there."""
        for path, value in self.state.env.items():
            a, b = then.env.get(path), otherwise.env.get(path)
            if a is None or b is None or not value.made or not value.is_tensor:
                continue
            if may_be_accelerator(a.device) and CPU_PLACE not in a.device and b.device == CPU:
                self.state.env[path] = replace(value, made=())

    def surely_elsewhere(self, on_cpu: set[str], entry: State) -> bool:
        """Whether a branch that is for CPU tensors is not taken, since one of them is known to be on an accelerator."""
        return bool(on_cpu) and any(is_surely_accelerator(entry.env[p].device) for p in on_cpu if p in entry.env)

    def decided(self, test: ast.expr) -> bool | None:
        """Whether a condition is a parameter that this call gives as a literal True or False, and which one."""
        holds = True
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1:
            known = self.state.env.get(test.left.id)
            right = test.comparators[0]
            if known is None or known.kind != "none" or not isinstance(right, ast.Constant) or right.value is not None:
                return None
            is_parameter = self.function is not None and self.is_parameter(test.left.id)
            asks = isinstance(test.ops[0], (ast.Is, ast.Eq))
            if not is_parameter or not (asks or isinstance(test.ops[0], (ast.IsNot, ast.NotEq))):
                return None
            return asks is holds
        if self.function is None or not isinstance(test, ast.Name):
            return None
        value = self.state.env.get(test.id)
        if value is None or value.kind != "bool" or not isinstance(value.constant, bool):
            return None
        return (value.constant is holds) if self.is_parameter(test.id) else None

    def is_parameter(self, name: str) -> bool:
        """Whether a name is a parameter of the function that is run."""
        spec = self.function.node.args if self.function is not None else None
        return spec is not None and any(a.arg == name for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))

    def choose_devices(self, then: State, otherwise: State, condition: conditions.Condition, node: ast.If) -> None:
        """A variable that got a device in one branch and another in the other is a chosen device."""
        if then.dead or otherwise.dead:
            return
        for path, value in self.state.env.items():
            if value.kind not in ("device", "string") or len(value.device) == 1:
                continue
            a, b = then.env.get(path), otherwise.env.get(path)
            if a is not None and b is not None and a.device and b.device and a.device != b.device:
                chosen = self.choose(a, b, condition)
                self.state.env[path] = replace(
                    chosen, device=symbol(path, self.span(node).start), split=value.split, because=()
                )
                self.mark_fallback(a, b)

    def mark_fallback(self, a: Value, b: Value) -> None:
        """The literals of both branches are a choice with a fallback, not a fixed device."""
        for value in (a, b):
            if value.because:
                self.fallbacks.add(value.because[0].span)

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        iterated = self.evaluate(node.iter)
        element = self.turns(node.iter, iterated)
        if iterated.kind == "module" and iterated.elements is None:
            element = NOTHING  # what is in it is not shown
        if self.assume and not self.host:
            element = batches.element_of_loop(self, node, element)

        outer = self.loop_names

        def head() -> None:
            self.assign_target(node.target, element, None)
            names = [n.id for n in walk(node.target) if isinstance(n, ast.Name)]
            scope = self.scope()
            first = self.span(node.body[0])
            env = self.state.env
            self.loop_names = {**outer, **{n: (first, scope, env[n]) for n in names if n in env and env[n].device}}

        sums = {name: value for name, value in self.state.env.items() if value.zero_dim is True and value.made}
        self.loop(node.body, head, turns.index_of(node))
        self.loop_names = outer
        for name, start in sums.items():
            end = self.state.env.get(name)
            if end is not None and start.device == CPU and CPU_PLACE in end.device and len(end.device) > 1:
                # `total = torch.tensor(0.0)` is where its terms are once it has some
                made = tuple(creation for creation in end.made if creation not in start.made)
                self.state.env[name] = replace(end, device=end.device - CPU, made=made)
        if node.orelse:
            self.block(node.orelse)

    def while_(self, node: ast.While) -> None:
        def head() -> None:
            test = self.evaluate(node.test)
            note_truth(self, node.test)
            if test.is_tensor:
                self.wait_for(test)

        self.loop(node.body, head)
        if any(isinstance(n, ast.Attribute) and n.attr == "query" for n in walk(node.test)):
            self.wait()  # `while not event.query()`
        if node.orelse:
            self.block(node.orelse)

    def loop(self, body: Sequence[ast.stmt], head: Callable[[], None], index: str | None = None) -> None:
        """Run a body until nothing changes: from the entry, then from what it leaves; what still changes is unknown.

        `index`: the name that counts the turns. Where a condition asks for the first turn, that is run by itself.
        """
        outer, exits = self.turn, self.first_turn(body, head, index)
        self.repeat(body, head)
        for state in exits:
            self.state = join_states(self.state, state)
        self.turn = outer

    def first_turn(self, body: Sequence[ast.stmt], head: Callable[[], None], index: str | None) -> list[State]:
        """Run a loop's first turn where it is another one than the rest; the states in which it left the loop."""
        turn = turns.first_turn(body, self.state.env, index)
        self.turn = (self.function, turn) if turn is not None else None
        if turn is None or self.loops >= 3:
            self.turn = None
            return []
        guards = self.guards
        self.state = self.state.copy()
        self.breaks.append([])
        self.continues.append([])
        self.loops += 1
        head()
        self.block(body)
        self.loops -= 1
        self.guards = guards
        for state in self.continues.pop():
            self.state = join_states(self.state, state)
        exits = self.breaks.pop()
        if self.state.dead and exits:
            self.state.dead = False
        self.turn = (self.function, turn._replace(first=False))
        return exits

    def repeat(self, body: Sequence[ast.stmt], head: Callable[[], None]) -> None:
        """Run a body from where the loop stands until nothing changes."""
        entry = self.state
        joined = entry
        self.loops += 1
        guards = self.guards
        for attempt in range(PASSES if self.loops <= 3 else 1):
            self.state = joined.copy()
            self.breaks.append([])
            self.continues.append([])
            head()
            self.block(body)
            ends = [self.state, *self.continues.pop(), *self.breaks.pop()]
            self.guards = guards
            after = joined
            for end in ends:
                end.dead = end.dead and end is self.state
                before, after = after, join_states(after, end)
                keep_grown(after, before, end)
            if not self.state.dead and self.state.work is None:
                after.work = None  # the body waits, and it is taken to run
            if same_environment(after.env, joined.env):
                joined = after
                break
            if attempt:
                widened = False
                for path, value in after.env.items():
                    known = joined.env.get(path)
                    if known is not None and known.device != value.device:
                        after.env[path] = replace(value, device=UNKNOWN, made=(), split=None)
                        widened = True
                    elif attempt >= PASSES - 2 and value.device and entry.env.get(path) is not value:
                        # values are handed along a chain of names: nothing the body touches is sure
                        after.env[path] = replace(value, device=UNKNOWN, made=(), split=None)
                        widened = True
                if not widened:
                    joined = after
                    break
            joined = after
        self.loops -= 1
        joined.dead = False
        self.state = joined

    def break_(self, node: ast.Break) -> None:
        if self.breaks:
            self.breaks[-1].append(self.state.copy())
        self.state.dead = True

    def continue_(self, node: ast.Continue) -> None:
        if self.continues:
            self.continues[-1].append(self.state.copy())
        self.state.dead = True

    def return_(self, node: ast.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else NONE
        if node.value is not None:
            self.leave_all(node.value, value)
            if value.kind == "list" and self.in_init and (parts := grown_lists.of_name(self, node.value)):
                value = Value("list", elements=parts)
            if isinstance(node.value, ast.IfExp) and value.is_tensor and value.made and len(value.device) > 1:
                condition = conditions.read(node.value.test, self.qualify, self.asked, self.text)
                self.returns.append(self.evaluate(node.value.body))
                value = self.evaluate(node.value.orelse)
                if value.is_tensor and not condition.when.isdisjoint(("cuda", "accelerator")):
                    value = replace(value, device=UNKNOWN, made=())  # as below
        if value.is_tensor and value.made and not self.guards.fails.isdisjoint(("cuda", "accelerator")):
            value = replace(value, device=UNKNOWN, made=())  # right for who is on the CPU, and nobody else gets it
        self.returns.append(value)
        self.state.dead = True

    def leave_all(self, node: ast.expr, value: Value) -> None:
        """What is returned, alone or in a tuple, list or dict."""
        if value.is_tensor:
            self.leave(node, value, "returned")
        elif isinstance(value.elements, tuple) and value.kind in ("tuple", "list"):
            for element in value.elements:
                self.leave(node, element, "returned")

    def raise_(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self.evaluate(node.exc)
        self.state.dead = True

    def assert_(self, node: ast.Assert) -> None:
        condition = conditions.read(node.test, self.qualify, self.asked, self.text)
        self.evaluate(node.test)
        note_truth(self, node.test)
        self.guards = self.under(condition)

    def try_(self, node: ast.Try) -> None:
        entry, guards = self.state.copy(), self.guards
        self.guards = Guards(guards.holds, guards.fails, guards.tests, True)
        self.block(node.body)
        self.guards = guards
        self.block(node.orelse)
        end = self.state
        raised = end
        for handler in node.handlers:
            self.state = entry.copy()
            for path, value in raised.env.items():
                # the error came somewhere in between
                if entry.env.get(path) is not value:
                    self.state.env[path] = NOTHING
            if handler.type is not None:
                self.evaluate(handler.type)
            if handler.name:
                self.bind(handler.name, NOTHING)
            if handler.type is not None and any(getattr(n, "id", "") in _LACKS for n in ast.walk(handler.type)):
                self.guards = Guards(guards.holds, guards.fails, guards.tests, True)
                self.substitutes |= {
                    id(n) for n in handler.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
                }
            self.block(handler.body)
            self.guards = guards
            end = join_states(end, self.state)
        self.state = end
        dead = self.state.dead
        self.state.dead = False
        self.block(node.finalbody)
        self.state.dead = self.state.dead or dead

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        card, default = self.state.card, self.state.default
        timed = []
        for item in node.items:
            value = self.evaluate(item.context_expr)
            self.enter(item.context_expr, value)
            started = self.entered(item.context_expr, value)
            if started is not None:
                timed.append((item.context_expr, started))
            if item.optional_vars is not None:
                self.assign_target(item.optional_vars, value if value.kind != "device" else NOTHING, item.context_expr)
        self.block(node.body)
        for expression, started in reversed(timed):
            self.left(expression, started)
        self.state.card, self.state.default = card, default

    def enter(self, node: ast.expr, value: Value) -> None:
        """A context manager takes effect: `torch.device(...)`, `torch.cuda.device(i)`."""
        if value.kind == "device":
            self.state.default = value if value.device != CPU else None
            return
        if isinstance(node, ast.Call):
            name = self.qualify(node.func)
            if name in ("torch.cuda.device", "torch.accelerator.device_index", "torch.cuda.device_of"):
                number = self.evaluate(node.args[0]).constant if node.args else None
                self.state.card = number if isinstance(number, int) and not isinstance(number, bool) else None
                return
        if value.kind in ("unknown", "none") and ".device(" in self.text(node):
            self.state.default = Value("device")

    def match_(self, node: ast.Match) -> None:
        subject = self.evaluate(node.subject)
        entry = self.state
        result: State | None = None
        for case in node.cases:
            self.state = entry.copy()
            self.capture(case.pattern, subject)
            if case.guard is not None:
                self.evaluate(case.guard)
            self.block(case.body)
            result = self.state if result is None else join_states(result, self.state)
        if result is None or not irrefutable(node.cases[-1]):
            result = entry if result is None else join_states(entry, result)
        self.state = result

    def capture(self, pattern: ast.pattern, subject: Value) -> None:
        """Bind the names of a pattern: to the subject, to its elements, or to something that is not known."""
        if isinstance(pattern, ast.MatchAs):
            if pattern.pattern is not None:
                self.capture(pattern.pattern, subject)
            if pattern.name is not None:
                self.bind(pattern.name, subject)
            return
        elements = subject.elements
        if isinstance(pattern, ast.MatchSequence) and isinstance(elements, tuple) and subject.kind in ("tuple", "list"):
            parts = pattern.patterns
            if len(elements) == len(parts) and not any(isinstance(p, ast.MatchStar) for p in parts):
                for part, value in zip(parts, elements, strict=True):
                    self.capture(part, value)
                return
        if isinstance(pattern, ast.MatchMapping) and isinstance(elements, dict) and pattern.rest is None:
            for key, part in zip(pattern.keys, pattern.patterns, strict=True):
                known = isinstance(key, ast.Constant) and isinstance(key.value, str)
                self.capture(part, elements.get(key.value, NOTHING) if known else NOTHING)  # type: ignore[attr-defined]
            return
        for child in walk(pattern):
            name = getattr(child, "name", None) or getattr(child, "rest", None)
            if isinstance(name, str):
                self.bind(name, NOTHING)


def of_pair(source: ast.expr | None, target: ast.Tuple | ast.List, index: int) -> ast.expr | None:
    """What `self.index = ...` gets in `self.a, self.b = [], []`; None for anything but new lists and dicts."""
    if not isinstance(source, (ast.Tuple, ast.List)) or len(source.elts) != len(target.elts):
        return None
    part = source.elts[index]
    return part if is_self_attribute(target.elts[index]) and isinstance(part, (ast.List, ast.Dict)) else None


def dimensions(value: Value) -> int:
    """How many sizes the call that made a tensor names; 0 where that is not known."""
    if len(value.made) != 1 or value.made[0].function not in ("torch.zeros", "torch.ones", "torch.empty"):
        return 0
    sizes = value.made[0].node.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    return 0 if any(isinstance(size, ast.Starred) for size in sizes) else len(sizes)


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


def irrefutable(case: ast.match_case) -> bool:
    """`case _:` and `case name:` without a guard: one of the cases runs."""
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def is_abroad(device: Device) -> bool:
    """Whether a device has a name in another file only."""
    return any(isinstance(place, Symbol) and place.scope < 0 for place in device)


def is_alias(node: ast.Assign) -> bool:
    """`a = b`: a second name for one object."""
    return isinstance(node.value, ast.Name) and all(isinstance(t, (ast.Name, ast.Attribute)) for t in node.targets)


def ends_the_run(function: ast.expr) -> bool:
    """Whether a call never returns: `sys.exit`, `pytest.skip`, `self.skipTest`, `parser.error`."""
    if isinstance(function, ast.Name):
        return function.id in ("exit", "quit")
    if isinstance(function, ast.Attribute):
        base = function.value.id if isinstance(function.value, ast.Name) else ""
        return (base, function.attr) in _ENDS or function.attr == "skipTest"
    return False


def only_calls(body: Sequence[ast.stmt]) -> bool:
    return all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in body)


def moves_by(node: ast.AST, path: str) -> bool:
    """Whether a node is `x.cuda(path)` or `x.to(path)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    return node.func.attr in ("cuda", "to", "xpu", "npu") and ast.unparse(node.args[0]) == path


def restore(state: State, other: State, told: dict[str, tuple[Value, Value]]) -> None:
    """After a condition told where a tensor is: where both branches left it alone it is what it was before."""
    for path, (before, after) in told.items():
        if state.env.get(path) is after and other.env.get(path) is before:
            state.env[path] = before


def keep_grown(after: State, before: State, end: State) -> None:
    """A list that a pass of a loop appends to holds what both the entry and the pass put into it."""
    for path, value in end.env.items():
        known = before.env.get(path)
        if known is None or value.kind != "list" or known is value or known.kind != "list":
            continue
        if isinstance(value.elements, tuple) and isinstance(known.elements, tuple):
            several = len(value.elements) != len(known.elements) or known.type_name == GROWN
            if several and any(map(rows.holds_tensors, value.elements)):
                after.env[path] = grown(known.elements + value.elements)


def same_environment(a: dict[str, Value], b: dict[str, Value]) -> bool:
    if len(a) != len(b):
        return False
    for path, value in a.items():
        other = b.get(path)
        if other is not value and (other is None or other.kind != value.kind or other.device != value.device):
            return False
    return True


def replace_dead(state: State) -> State:
    copied = state.copy()
    copied.dead = False
    return copied


def node_expr(node: ast.AugAssign) -> ast.expr:
    """An augmented assignment as the node of an event: it has the span of the statement."""
    return cast(ast.expr, node)


_ENDS = {("sys", "exit"), ("os", "_exit"), ("pytest", "skip"), ("pytest", "exit"), ("parser", "error")}

_STATEMENTS: dict[type[ast.stmt], Callable[[Flow, Any], None]] = {
    ast.Assign: Flow.assign,
    ast.AnnAssign: Flow.annotated,
    ast.AugAssign: Flow.augmented,
    ast.Expr: Flow.expression,
    ast.If: Flow.if_,
    ast.For: Flow.for_,
    ast.AsyncFor: Flow.for_,
    ast.While: Flow.while_,
    ast.With: Flow.with_,
    ast.AsyncWith: Flow.with_,
    ast.Try: Flow.try_,
    ast.Return: Flow.return_,
    ast.Raise: Flow.raise_,
    ast.Assert: Flow.assert_,
    ast.Delete: Flow.delete,
    ast.Break: Flow.break_,
    ast.Continue: Flow.continue_,
    ast.Match: Flow.match_,
    ast.FunctionDef: Flow.define,
    ast.AsyncFunctionDef: Flow.define,
    ast.ClassDef: Flow.define_class,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = Flow.try_


def is_blank(value: Value) -> bool:
    """Whether nothing is known of a value, nor of any of its parts."""
    parts = value.elements if value.kind == "tuple" and isinstance(value.elements, tuple) else (value,)
    return all(part.kind == "unknown" and not part.device for part in parts)
