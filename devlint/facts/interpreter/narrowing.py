"""Narrowing: what a condition says of values in the branch where it holds, and the values that it chooses between."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Set
from functools import lru_cache

from devlint.facts.events import Guards
from devlint.facts.frozen import replace
from devlint.facts.idioms import converted, guesses, turns
from devlint.facts.idioms import guards as conditions
from devlint.facts.idioms.api_calls import note_truth
from devlint.facts.interpreter.machine import is_flag
from devlint.facts.interpreter.subscripts import Subscripts
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import asks_none
from devlint.facts.values import (
    ACCELERATORS,
    CPU,
    GUESS,
    NO_TENSOR,
    NOTHING,
    TOLD,
    UNKNOWN,
    Device,
    Place,
    Symbol,
    Value,
    either,
    is_assumed,
    is_surely_accelerator,
    join,
    merge,
)

#: The path of an item by its place: `found[0]`, `self.found[-1]`.
_ITEM = re.compile(r"([\w.]+)\[-?\d+\]")


class Narrowing(Subscripts):
    """Adds `under`, `refine` and `place` (what holds in a branch), `choose` and `conditional` (what a choice gives)."""

    def told_by_turn(self, test: ast.expr) -> bool | None:
        """Whether a condition asks for the turn of the loop that is run here, and holds."""
        if self.turn is None or self.turn[0] is not self.function:
            return None
        return turns.decide(test, self.turn[1], self.state.env)

    def told_by_type(self, test: ast.expr, condition: conditions.Condition) -> bool | None:
        """Whether a condition that asks whether a parameter is a tensor holds for what this call gives for it."""
        if not self.given_tensor or not (condition.no_tensor or condition.else_no_tensor):
            return None
        holds = True
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        for name, given in self.given_tensor.items():
            if name not in condition.no_tensor and name not in condition.else_no_tensor:
                continue
            value = self.state.env.get(name)
            if value is None or value.is_tensor is not given or value.type_name == NO_TENSOR:
                continue  # the function bound it anew
            if given:
                return name in condition.else_no_tensor
            if isinstance(test, ast.Call) and name in (condition.else_no_tensor if holds else condition.no_tensor):
                return not holds  # it asks for a tensor, and for no other type
        return None

    def conditional(self, node: ast.IfExp) -> Value:
        taken = self.told_by_turn(node.test)
        if taken is not None:
            return self.evaluate(node.body if taken else node.orelse)
        condition = conditions.read(node.test, self.qualify, self.asked, self.text)
        test = self.evaluate(node.test)
        note_truth(self, node.test)
        saved, negated = self.guards, condition.negated()
        state, splits = self.state, condition.key in self.split_keys or negated.key in self.split_keys
        splits = splits or self.may_refine(node.test)
        self.guards = self.under(condition)
        told = condition.tells_values
        if splits or told:
            self.state = state.copy()
            self.refine_by(node.test, True)
            self.place(condition.on_cpu, condition.has_device)
            self.no_tensors(condition.no_tensor)
            self.no_modules(condition.no_module)
        body = self.evaluate(node.body)
        self.guards = saved
        self.guards = self.under(negated)
        if splits or told:
            self.state = state.copy()
            self.refine_by(node.test, False)
            self.place(condition.else_on_cpu, condition.has_device)
            self.no_tensors(condition.else_no_tensor)
            self.no_modules(condition.else_no_module)
        orelse = self.evaluate(node.orelse)
        self.guards, self.state = saved, state
        if test.constant is True and test.kind == "bool":
            return body
        if (taken := self.told_by_type(node.test, condition)) is not None:
            return body if taken else orelse
        if body.kind != "string" and is_told_string(node.test, node.body):
            body = Value("string")
        if condition.no_tensor or condition.else_no_tensor:
            kept = converted.of_choice(self, node, condition, body, orelse)
            if kept is not None:
                return merge(kept, body if converted.is_new(body) else orelse)
        if asks_for_type(condition) and body.is_tensor and body.device == CPU and is_assumed(orelse.device):
            return body  # the other arm is for where there is no such accelerator
        filled = NOTHING in (body, orelse) and fills_in(node)
        chosen = either(body, orelse) if filled else self.choose(body, orelse, condition)
        chosen = self.of_either(chosen, body, orelse)
        # `x.cuda() if use_cuda else x`; `x.device if torch.is_tensor(x) else "cpu"`
        moved = chosen.is_tensor and (body.moved or orelse.moved)
        place = chosen.kind in ("device", "string") and chosen.device and CPU in (body.device, orelse.device) and told
        new = chosen.is_tensor and bool(body.made or orelse.made)  # `x if given else torch.zeros(1)`
        new |= chosen.kind == "tensor" and "number" in (body.kind, orelse.kind)  # `0 if at is None else at` is one item
        if (moved or place or new) and body.device != orelse.device:
            # a condition that an equal one does not repeat still tells which values belong together
            remembered = self.remember(condition.key, node.test)
            key = condition.key if remembered else f"{condition.key} @{self.span(node).start}"
            self.told_apart.add(key)
            chosen = replace(chosen, split=(key, replace(body, split=None), replace(orelse, split=None)))
        return self.along(chosen, body, orelse, condition)

    def remember(self, key: str, test: ast.expr) -> bool:
        """Whether an equal condition later has the same answer as long as its names are not rebound."""
        for child in names_and_calls(test):
            if isinstance(child, ast.Call) and not (self.qualify(child.func) or "").endswith(
                ("is_available", "isinstance", "is_tensor")
            ):
                return False
            if isinstance(child, ast.Name):
                self.split_names.add(child.id)
        self.split_keys.add(key)
        return True

    def along(self, joined: Value, then: Value, otherwise: Value, condition: conditions.Condition) -> Value:
        """A value that is moved only where another one `is_cuda` is on that one's device: `y.cuda() if x.is_cuda else y`."""
        moved = joined.is_tensor and is_surely_accelerator(then.device) and otherwise.device == CPU
        if not moved or not condition.else_on_cpu:
            return joined
        tested = [self.state.env.get(path) for path in condition.else_on_cpu]
        known = tested[0] if len(tested) == 1 else None
        if known is None or not known.is_tensor:
            return replace(joined, device=UNKNOWN)
        return replace(joined, device=known.device, because=known.because)

    def refine_by(self, test: ast.expr, holds: bool) -> dict[str, tuple[Value, Value]]:
        """`refine` for a condition that holds, or does not, and for each of its parts that then does so too, also where a
        part is the opposite of an earlier condition, or a flag that was set with what that one told apart."""
        if not self.told_apart and not self.told_before:
            return {}
        told: dict[str, tuple[Value, Value]] = {}
        parts = [(test, holds)]
        for part, true in parts:  # which grows
            if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
                parts.append((part.operand, not true))
                continue
            if isinstance(part, ast.BoolOp) and isinstance(part.op, ast.And if true else ast.Or):
                parts += [(value, true) for value in part.values]
            key, opposite = self.keys_of(part)
            told |= self.refine(key if true else f"not {key}")
            if opposite is not None:
                told |= self.refine(f"not {opposite}" if true else opposite)
            flag = self.state.env.get(part.id) if isinstance(part, ast.Name) else None
            if flag is not None and flag.split is not None and is_flag(flag.split[1], flag.split[2]):
                key, first, _ = flag.split
                told |= self.refine(key if bool(first.constant) is true else negation_of(key))
        return told

    def keys_of(self, test: ast.expr) -> tuple[str, str | None]:
        """The text of a condition, and of the one that asks the opposite, if there is one."""
        keys = self._keys.get(test)
        if keys is None:
            keys = self._keys[test] = conditions.key_of(test, self.text), opposite_of(test, self.text)
        return keys

    def may_refine(self, test: ast.expr) -> bool:
        """Whether a condition, or a part of it, may have told values apart before."""
        if not self.told_apart:
            return False
        texts = (conditions.key_of(part, self.text) for part in walk(test) if isinstance(part, ast.expr))
        return any(isinstance(part, ast.Name) and self.is_set_flag(part.id) for part in walk(test)) or any(
            text in self.told_apart or f"not {text}" in self.told_apart for text in texts
        )

    def is_set_flag(self, name: str) -> bool:
        value = self.state.env.get(name)
        return value is not None and value.split is not None and value.kind in ("bool", "number")

    def refine(self, key: str) -> dict[str, tuple[Value, Value]]:
        """Values that an earlier equal condition told apart are told apart again.

        Gives what is on the CPU here since it was moved to a device that is that: before and after.
        """
        base, holds = (key[4:], False) if key.startswith("not ") else (key, True)
        negated = f"not {base}"
        if self.told_apart.isdisjoint((base, negated)) and self.told_before.isdisjoint((base, negated)):
            return {}
        on_cpu: set[Device] = set()
        for path, value in self.state.env.items():
            if value.split is not None and value.split[0] in (base, negated):
                first = value.split[1] if (value.split[0] == base) == holds else value.split[2]
                self.state.env[path] = first
                if value.kind in ("device", "string") and first.device == CPU and is_symbol(value.device):
                    on_cpu.add(value.device)  # and so is what was moved there
        changed: dict[str, tuple[Value, Value]] = {}
        for path, value in self.state.env.items() if on_cpu else ():
            if value.device in on_cpu:
                self.state.env[path] = told = replace(value, device=CPU, made=(), split=None)
                changed[path] = value, told
        if self.function is not None:
            for scope in (self.globals, self.function.closure):
                for path, value in scope.items():
                    if value.split is not None and value.split[0] in (base, negated):
                        first = value.split[1] if (value.split[0] == base) == holds else value.split[2]
                        self.state.env.setdefault(path, first)
        return changed

    def place(self, on_cpu: Set[str], has_device: Set[str]) -> dict[str, tuple[Value, Value]]:
        """Values that a condition tells to be on the CPU here: before and after. A device takes what is on it along.

        What is asked for its device, and of which nothing else is known, is a tensor.
        """
        changed: dict[str, tuple[Value, Value]] = {}
        for path in on_cpu:
            value = self.lookup(path)
            if value is not None and not value.device and path in has_device and path in self.state.env:
                if value.kind != "unknown" and not value.is_tensor:
                    continue
                told = Value("tensor", CPU, value.zero_dim, type_name=TOLD)
                self.state.env[path] = told
                changed[path] = (value, told)
                continue
            if value is None or not (value.is_tensor or value.kind in ("device", "string")):
                continue
            if value.device == CPU or not any(isinstance(p, Symbol) or p.type == "cpu" for p in value.device):
                continue
            same = {path: value}
            if value.kind != "tensor" and len(value.device) == 1:
                same = {p: v for p, v in self.state.env.items() if v.device == value.device}
            for other, known in same.items():
                told = replace(known, device=CPU, made=(), split=None)
                self.state.env[other] = told
                changed[other] = (known, told)
        return changed

    def no_tensors(self, paths: Set[str]) -> dict[str, tuple[Value, Value]]:
        """Values that a condition tells to be no tensors here: nothing is known of them.

        `isinstance(found[0], torch.Tensor)` tells it of all that is in a list, or in what a module gives.
        """
        changed: dict[str, tuple[Value, Value]] = {}
        for path in paths:
            value = self.lookup(path)
            if value is None and (item := _ITEM.fullmatch(path)) is not None:
                path, value = item[1], self.lookup(item[1])
                if value is not None and value.kind == "list" and any(each.is_tensor for each in value.parts):
                    self.state.env[path] = told = replace(value, elements=None)
                    changed[path] = (value, told)
                    continue
            if value is None and all(map(str.isidentifier, parts := path.split("."))) and len(parts) > 1:
                # a field of an object: what the object says of it does not hold here
                value = Value("unknown", type_name=GUESS)
            if value is not None and (value.is_tensor or guesses.is_guess(value)):
                told = Value("unknown", type_name=NO_TENSOR)
                self.state.env[path] = told
                changed[path] = (value, told)
        return changed

    def no_modules(self, paths: Set[str]) -> dict[str, tuple[Value, Value]]:
        """Values that a condition tells to be no modules here: nothing is known of them, and of what a call of them gives."""
        changed: dict[str, tuple[Value, Value]] = {}
        for path in paths:
            value = self.lookup(path)
            if value is not None and (value.kind == "module" or value.type_name == "moved"):
                told = Value("unknown")
                self.state.env[path] = told
                changed[path] = (value, told)
        return changed

    def tensors_here(self, paths: Set[str]) -> None:
        """Values that a condition tells to be tensors here: guesses become tensors."""
        for path in paths:
            value = self.lookup(path)
            if value is not None and guesses.is_guess(value):
                self.state.env[path] = guesses.tensor(value)

    def choose(self, body: Value, orelse: Value, condition: conditions.Condition) -> Value:
        """The value of a choice. A choice of devices is one device that the code does not name."""
        kinds = {body.kind, orelse.kind}
        if kinds <= {"string", "device"} and body.device and orelse.device and body.device != orelse.device:
            available = [t for t in condition.when if t in ACCELERATORS or t == "accelerator"]
            chosen = None
            if len(body.device) == 1 and orelse.device == CPU:
                (place,) = body.device
                plain = isinstance(place, Place) and place.card is None
                if isinstance(place, Place) and plain and place.type in available and _only_availability(condition):
                    chosen = f"chosen:{place.type}"
            return Value(
                "device" if "device" in kinds else "string",
                join(body.device, orelse.device),
                because=body.because,
                type_name=chosen or "chosen",
            )
        if {"device", "none"} == kinds:
            return body if body.kind == "device" else orelse
        return either(body, orelse) if "generator" in kinds else merge(body, orelse)

    def under(self, condition: conditions.Condition) -> Guards:
        """The guards inside a branch where the condition holds."""
        guards = self.guards
        holds = guards.holds.union(condition.when) if condition.when else guards.holds
        fails = guards.fails.union(condition.when_not) if condition.when_not else guards.fails
        return Guards(holds, fails, (*guards.tests, condition.key), guards.caught, guards.kept_for)


@lru_cache(1024)
def names_and_calls(test: ast.expr) -> tuple[ast.Name | ast.Call, ...]:
    """The names and calls in a condition, in the order of `walk`."""
    return tuple(node for node in walk(test) if isinstance(node, (ast.Name, ast.Call)))


def asks_for_type(condition: conditions.Condition) -> bool:
    """Whether a condition holds where there is an accelerator of some type: `device.type == "cuda"`."""
    return not condition.unless_not.isdisjoint(ACCELERATORS | {"accelerator"})


def is_symbol(device: Device) -> bool:
    """Whether a device is that of one variable."""
    return len(device) == 1 and all(isinstance(place, Symbol) for place in device)


def _only_availability(condition: conditions.Condition) -> bool:
    return condition.key.startswith("torch.") and condition.key.endswith("()")


def fills_in(node: ast.IfExp) -> bool:
    """Whether a choice puts something in the place of a name that is None: `x if x is not None else torch.ones(3)`."""
    for arm, asked in ((node.body, ast.IsNot), (node.orelse, ast.Is)):
        if isinstance(arm, ast.Name) and asks_none(node.test, arm.id, asked):
            return True
    return False


def is_told_string(test: ast.expr, node: ast.expr) -> bool:
    """Whether a condition, or a part of it that must hold, asks whether a name is a string."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return isinstance(node, ast.Name) and any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Name)
        and part.func.id == "isinstance"
        and len(part.args) == 2
        and all(isinstance(a, ast.Name) for a in part.args)
        and [getattr(a, "id", "") for a in part.args] == [node.id, "str"]
        for part in parts
    )


#: What asks the opposite.
_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Is: "is not", ast.IsNot: "is", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip


def opposite_of(test: ast.expr, source: Callable[[ast.AST], str]) -> str | None:
    """The text of the condition that asks the opposite: `x is not None` for `x is None`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _OPPOSITES:
        return None
    left, right = conditions.key_of(test.left, source), conditions.key_of(test.comparators[0], source)
    return f"{left} {_OPPOSITES[type(test.ops[0])]} {right}"


def negation_of(key: str) -> str:
    return key[4:] if key.startswith("not ") else f"not {key}"
