"""`if` and `match`: every branch by itself, and what is known after them."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from functools import partial

from devlint.facts.frozen import replace
from devlint.facts.idioms import converted, moved_off_cpu, rows
from devlint.facts.idioms import guards as conditions
from devlint.facts.idioms.api_calls import note_truth
from devlint.facts.interpreter.assignments import Assignments
from devlint.facts.interpreter.machine import State, join_states
from devlint.facts.interpreter.operations import CPU_PLACE
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.options import last_option
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.signatures import parameter_names, parameter_of
from devlint.facts.text.signs import asks_for_card, moves
from devlint.facts.values import CPU, NONE, NOTHING, Value, either, is_surely_accelerator, may_be_accelerator, symbol


class Conditionals(Assignments):
    """Adds `if_` and `match_`."""

    def if_(self, node: ast.If) -> None:
        self.steps += len(self.state.env) >> 3
        condition = conditions.read(node.test, self.qualify, self.asked, self.text)
        chosen = self.moves_by_test(node)
        if chosen:
            condition.unless_not |= {"accelerator"}
        elif chosen is not None:
            condition.when_not |= {"accelerator"}
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
        by_flag = self.told_by_flag(node.test)
        if by_flag is not None:
            self.block(node.body if by_flag else node.orelse)  # another path sets the flag otherwise
            return
        if taken is None:
            taken = self.told_by_type(node.test, condition)
        then = entry.copy()
        self.state = then
        self.guards = self.under(condition)
        on_cpu = self.told_in_branch(node.test, True, condition, node.orelse)
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
        off_card = self.told_in_branch(node.test, False, negated, node.body if node.orelse else [])
        queued = otherwise.work is not None or otherwise.recorded
        if queued and (condition.unless_not or (only_calls(node.body) and then.work is None)):
            # there is no device here, or the program itself says so by waiting in the other branch alone
            otherwise.work = None
            otherwise.recorded = {path: (span, True) for path, (span, _) in otherwise.recorded.items()}
        self.block(node.orelse)
        otherwise = self.state
        for name in self.last_options.get(id(node), ()):
            before, after = entry.env.get(name), then.env.get(name)
            if before is not None and before.made and after is not None:
                otherwise.env[name] = after  # what was made before the options only stands for what each of them binds
        if condition.tells_values:
            if self.surely_elsewhere(condition.on_cpu, entry):
                then.dead = True
            elif self.surely_elsewhere(condition.else_on_cpu, entry):
                otherwise.dead = True
        exports = conditions.asks_for_export(node.test, self.qualify)
        if exports is not None and not then.dead and not otherwise.dead:
            # what follows runs on accelerators after the plain path; an export goes its own way, on the host for the most part
            (then if exports else otherwise).dead = True
        if taken is True:
            otherwise.dead = True
            del self.returns[returned:]
        self.guards = guards
        if on_cpu or off_card:
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
        self.state = join_states(then, otherwise, key, self.told_apart)
        if then.dead or otherwise.dead:
            return
        if condition.tells_values:
            moved_off_cpu.settle(self.state, then, otherwise, condition)
        fixed = partial(self.is_fixed, node)
        rows.grown_on_both(self.state, entry, then, otherwise, condition.key, self.loops > 0, fixed)
        self.join_attributes(then, otherwise)
        differ = differing(then, otherwise)
        if differ:
            self.join_modules(then, otherwise, differ)
            self.choose_devices(then, otherwise, condition, node, differ)
        if condition.when or asks_for_card(node.test):
            self.bound_by_availability(then, otherwise)
            self.bound_by_availability(otherwise, then)
            if isinstance(node.test, ast.UnaryOp):
                self.brought_back(otherwise, then)
            else:
                self.brought_back(then, otherwise)
        if condition.else_on_cpu:
            for path, value in list(self.state.env.items()):
                if path in then.env and path in otherwise.env:
                    self.state.env[path] = self.along(value, then.env[path], otherwise.env[path], condition)

    def told_in_branch(
        self, test: ast.expr, holds: bool, condition: conditions.Condition, other: list[ast.stmt]
    ) -> dict[str, tuple[Value, Value]]:
        """At the start of a branch: what the test tells of the values there, and which are on the CPU by it, before and after.

        `condition`: what holds in the branch. `other`: the statements of the other one.
        """
        on_cpu = self.refine_by(test, holds)
        self.none_here(test, holds)
        if condition.tells_values:
            on_cpu |= self.place(condition.on_cpu, condition.has_device) | self.no_tensors(condition.no_tensor)
            on_cpu |= self.no_modules(condition.no_module)
            self.tensors_here(condition.else_no_tensor)
            converted.ahead(self, condition.else_no_tensor, other)
        return on_cpu

    def none_here(self, test: ast.expr, holds: bool) -> None:
        """The branch of `if weight is None:` in which the variable is None: there it is no tensor."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
            return
        right, name = test.comparators[0], test.left.id
        known = self.state.env.get(name)
        if not isinstance(right, ast.Constant) or right.value is not None or known is None:
            return
        if isinstance(test.ops[0], ast.Is if holds else ast.IsNot) and known.kind in ("tensor", "unknown"):
            if bool(known.made) is not self.is_parameter(name):  # what is made for a name that was None, or an argument
                self.state.env[name] = NONE

    def join_attributes(self, then: State, otherwise: State) -> None:
        """An attribute of `self` that one branch binds to a new tensor is, after the other one, what it was. Both go on."""
        if self.owner is None or self.in_init:
            return
        for one, other in ((then.env, otherwise.env), (otherwise.env, then.env)):
            for path, value in one.items():
                if value.made and path.startswith("self.") and path not in other and path[5:].isidentifier():
                    before = self.owner.attribute(path[5:])
                    self.state.env[path] = either(value, before if before is not None else NOTHING)

    def join_modules(self, then: State, otherwise: State, differ: Sequence[str]) -> None:
        """A module that is of one class after one branch and of another after the other. `differ`: see `differing`."""
        for path in differ:
            value = self.state.env[path]
            if value.kind == "module" and value.type_name is None:
                self.state.env[path] = self.of_either(value, then.env[path], otherwise.env[path])

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
        if path is None or not (asks_for_card(test) or "rank" in path):
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

    def brought_back(self, then: State, otherwise: State) -> None:
        """What `if use_cuda: y = y.cpu()` brings to the host is there after it: where the flag says no, it never left."""
        for path, value in self.state.env.items():
            back, rest = then.env.get(path), otherwise.env.get(path)
            if back is None or rest is None or not value.is_tensor or not rest.is_tensor:
                continue
            if back.device == CPU and back.moved and len(rest.device) > 1 and CPU_PLACE in rest.device:
                self.state.env[path] = back

    def surely_elsewhere(self, on_cpu: Set[str], entry: State) -> bool:
        """Whether a branch that is for CPU tensors is not taken, since one of them is known to be on an accelerator."""
        return bool(on_cpu) and any(is_surely_accelerator(entry.env[p].device) for p in on_cpu if p in entry.env)

    def decided(self, test: ast.expr) -> bool | None:
        """Whether a condition is a parameter that this call gives as a literal True or False, and which one; or asks whether
        something has dimensions that surely has some, as what a mask picks has [aten/src/ATen/native/IndexingUtils.h]."""
        holds = True
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        if (counted := counted_dimensions(test)) is not None:
            tensor = self.evaluate(counted[0])
            return counted[1] is holds if tensor.is_tensor and tensor.zero_dim is False else None
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

    def told_by_flag(self, test: ast.expr) -> bool | None:
        """Whether a condition is a local flag of which this path knows the value, and which one: bound several times in the
        function, it says which way was taken."""
        holds = True
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        if own is None or self.loops or not isinstance(test, ast.Name) or own.bound.get(test.id, 0) < 2:
            return None
        value = self.state.env.get(test.id)
        if value is None or value.kind != "bool" or not isinstance(value.constant, bool) or self.is_parameter(test.id):
            return None
        return value.constant is holds

    def is_parameter(self, name: str) -> bool:
        """Whether a name is a parameter of the function that is run."""
        return self.function is not None and parameter_of(self.function.node.args, name) is not None

    def choose_devices(
        self, then: State, otherwise: State, condition: conditions.Condition, node: ast.If, differ: Sequence[str]
    ) -> None:
        """A variable that got a device in one branch and another in the other is a chosen device."""
        for path in differ:
            value = self.state.env[path]
            if value.kind not in ("device", "string") or len(value.device) == 1:
                continue
            a, b = then.env[path], otherwise.env[path]
            if a.device and b.device and a.device != b.device:
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

    def is_fixed(self, node: ast.If) -> bool:
        """Whether a condition asks for parameters and constants alone, which nothing binds, and the function asks it again:
        what it decides in every turn of a loop is read by it as well."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        if own is None or any(isinstance(part, (ast.Call, ast.Attribute, ast.Subscript)) for part in walk(node.test)):
            return False
        names = {part.id for part in walk(node.test) if isinstance(part, ast.Name)}
        if not names or not names <= {*parameter_names(own.node)} or names & {*own.bound, *own.nonlocals}:
            return False
        asked = ast.dump(node.test)
        every = (part for part in walk(own.node) if isinstance(part, (ast.If, ast.IfExp)) and part is not node)
        return any(ast.dump(part.test) == asked for part in every)

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


def counted_dimensions(test: ast.expr) -> tuple[ast.expr, bool] | None:
    """Of what a condition asks whether it has dimensions, and what it gives where it has: `x.dim()`, `x.ndim == 0`."""
    answer = True
    if isinstance(test, ast.Compare):
        right = test.comparators[0]
        is_zero = isinstance(right, ast.Constant) and type(right.value) is int and right.value == 0
        if len(test.ops) != 1 or not is_zero or not isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Gt)):
            return None
        answer = not isinstance(test.ops[0], ast.Eq)
        test = test.left
    if isinstance(test, ast.Call) and not test.args and last_name(test.func) in ("dim", "ndimension"):
        return (test.func.value, answer) if isinstance(test.func, ast.Attribute) else None
    return (test.value, answer) if isinstance(test, ast.Attribute) and test.attr == "ndim" else None


def irrefutable(case: ast.match_case) -> bool:
    """`case _:` and `case name:` without a guard: one of the cases runs."""
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def only_calls(body: Sequence[ast.stmt]) -> bool:
    return all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in body)


def moves_by(node: ast.AST, path: str) -> bool:
    """Whether a node is `x.cuda(path)` or `x.to(path)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    return node.func.attr in OFF_HOST and ast.unparse(node.args[0]) == path


def differing(then: State, otherwise: State) -> list[str]:
    """The paths that both branches, which go on, leave bound, to values that differ."""
    other = otherwise.env
    return [path for path, value in then.env.items() if path in other and other[path] is not value]


def restore(state: State, other: State, told: dict[str, tuple[Value, Value]]) -> None:
    """After a condition told where a tensor is: where both branches left it alone it is what it was before.

    What the other branch has no entry for is known by a scope around the function, or by the object that keeps it.
    """
    for path, (before, after) in told.items():
        if other.dead or state.env.get(path) is not after:
            continue
        if path not in other.env:
            del state.env[path]
        elif other.env[path] is before:
            state.env[path] = before
