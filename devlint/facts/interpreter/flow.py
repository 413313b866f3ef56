"""Statements: blocks of them, and those that end a function or guard a block. `Flow` is the whole interpreter."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from devlint.facts.events import Guards
from devlint.facts.frozen import replace
from devlint.facts.idioms import dropped_items, grown_lists, returned_by_helpers, siblings_returned
from devlint.facts.idioms import guards as conditions
from devlint.facts.idioms.api_calls import note_import, note_truth
from devlint.facts.idioms.ordering import OPTIMIZED
from devlint.facts.interpreter.loops import Loops
from devlint.facts.interpreter.machine import OutOfBudget, join_states
from devlint.facts.text.handlers import EVERYTHING, awaits_error, caught, stand_ins, suppressed
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import WITHOUT_CARD
from devlint.facts.values import CPU, NONE, NOTHING, UNKNOWN, Value

#: Errors of a version without a name: what handles them is for that version.
_LACKS = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})
_ENDS = {("sys", "exit"), ("os", "_exit"), ("pytest", "skip"), ("pytest", "exit"), ("parser", "error")}
#: Names of context managers in which modules are made without memory, or on another device than the CPU:
#: `init_empty_weights` [accelerate/big_modeling.py], `zero.Init`, `OnDevice` [deepspeed].
_PLACES = re.compile(r"(^|_)(empty|meta|device)(_|$)|^(Init|OnDevice)$")


class Flow(Loops):
    """The whole interpreter."""

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Run statements in order; a guard that ends with `return` or `raise` holds for the rest of the block."""
        saved = self.guards
        for statement in statements:
            if self.state.dead:
                if statement not in self.anew:
                    continue
                self.state.dead = False
            self.steps += 1
            if self.steps > self.budget:
                raise OutOfBudget
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                try:
                    handler(self, statement)
                except RecursionError:
                    self.facts.too_deep.append(self.span(statement))
        self.guards = saved

    def expression(self, node: ast.Expr) -> None:
        around = self.dropped_item
        self.statement_value, self.dropped_item = node.value, dropped_items.of(node.value)
        self.evaluate(node.value)
        self.statement_value, self.dropped_item = None, around
        if isinstance(node.value, ast.Call) and ends_the_run(node.value.func):
            self.state.dead = True

    def return_(self, node: ast.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else NONE
        if node.value is not None:
            self.leave_all(node.value, value)
            siblings_returned.note(self, node.value, value)
            if value.kind == "list" and self.in_init and (parts := grown_lists.of_name(self, node.value)):
                value = Value("list", elements=parts)
            if isinstance(node.value, ast.IfExp) and value.is_tensor and value.made and len(value.device) > 1:
                condition = conditions.read(node.value.test, self.qualify, self.asked, self.text)
                self.returns.append(self.evaluate(node.value.body))
                value = self.evaluate(node.value.orelse)
                if value.is_tensor and not condition.when.isdisjoint(("cuda", "accelerator")):
                    value = replace(value, device=UNKNOWN, made=())  # as below
        if value.made or value.kind == "tuple":
            guards = self.guards
            if not guards.fails.isdisjoint(("cuda", "accelerator")) or any(map(WITHOUT_CARD.match, guards.tests)):
                value = left_on_host(value)
        returned_by_helpers.note(self, node.value)
        self.returns.append(value)
        if self.modules_given:
            self.note_moved()
        self.state.dead = True

    def leave_all(self, node: ast.expr, value: Value) -> None:
        """What is returned, alone or in a tuple, list or dict."""
        if value.is_tensor:
            self.leave(node, value, "returned")
        elif isinstance(value.elements, tuple) and value.kind in ("tuple", "list"):
            written = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
            nodes = written if len(written) == len(value.elements) else [node] * len(value.elements)
            for part, element in zip(nodes, value.elements, strict=True):
                self.leave(part, element, "returned")

    def raise_(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self.evaluate(node.exc)
        self.state.dead = True

    def assert_(self, node: ast.Assert) -> None:
        condition = conditions.read(node.test, self.qualify, self.asked, self.text)
        self.evaluate(node.test)
        note_truth(self, node.test)
        self.guards = self.under(condition)
        self.place(condition.on_cpu, condition.has_device)
        self.no_tensors(condition.no_tensor)
        self.no_modules(condition.no_module)
        self.tensors_here(condition.else_no_tensor)
        self.none_here(node.test, True)

    def try_(self, node: ast.Try) -> None:
        entry, guards = self.state.copy(), self.guards
        self.guards = replace(guards, caught=guards.caught | caught(node))
        self.block(node.body)
        self.guards = guards
        self.block(node.orelse)
        end = self.state
        raised = end
        for handler in node.handlers:
            self.state = entry.copy()
            for path, value in raised.env.items():
                # the error came somewhere in between
                if entry.env.get(path) is not value and not path.startswith(OPTIMIZED):
                    self.state.env[path] = NOTHING
            if handler.type is not None:
                self.evaluate(handler.type)
            if handler.name:
                self.bind(handler.name, NOTHING)
            if handler.type is not None and any(getattr(n, "id", "") in _LACKS for n in ast.walk(handler.type)):
                self.guards = replace(guards, caught=EVERYTHING)
                self.substitutes |= {
                    id(n) for n in handler.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
                }
            self.block(handler.body)
            for name in stand_ins(node):
                self.state.env.pop(name, None)
            self.guards = guards
            end = join_states(end, self.state)
        self.state = end
        dead = self.state.dead
        self.state.dead = False
        self.block(node.finalbody)
        self.state.dead = self.state.dead or dead

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        card, default = self.state.card, self.state.default
        guards, awaited = self.guards, self.awaited
        timed = []
        for item in node.items:
            value = self.evaluate(item.context_expr)
            self.enter(item.context_expr, value)
            started = self.entered(item.context_expr, value)
            if started is not None:
                timed.append((item.context_expr, started))
            if awaits_error(item.context_expr):
                self.awaited = True
            elif isinstance(item.context_expr, ast.Call) and last_name(item.context_expr.func) == "suppress":
                self.guards = self.guards.both(Guards(caught=suppressed(item.context_expr)))
            if value.kind == "object" and value.type_name is None and isinstance(value.elements, tuple):
                value = self.element(value)  # what a function yields that is made a context manager
            if item.optional_vars is not None:
                self.assign_target(item.optional_vars, value if value.kind != "device" else NOTHING, item.context_expr)
        self.block(node.body)
        for expression, started in reversed(timed):
            self.left(expression, started)
        self.state.card, self.state.default = card, default
        self.guards, self.awaited = guards, awaited

    def enter(self, node: ast.expr, value: Value) -> None:
        """A context manager takes effect: `torch.device(...)`, `torch.cuda.device(i)`, `init_empty_weights()`."""
        if value.kind == "device":
            self.state.default = value if value.device != CPU else None
            return
        if isinstance(node, ast.Call):
            name = self.qualify(node.func)
            if name in ("torch.cuda.device", "torch.accelerator.device_index", "torch.cuda.device_of"):
                number = self.evaluate(node.args[0]).constant if node.args else None
                self.state.card = number if isinstance(number, int) and not isinstance(number, bool) else None
                return
        unknown = value.kind in ("unknown", "none") and ".device(" in self.text(node)
        if unknown or _PLACES.search(last_name(chosen(node))) is not None:
            self.state.default = Value("device")


def chosen(node: ast.expr) -> ast.expr:
    """What a context manager is made by: `init_empty_weights` of `init_empty_weights(include_buffers=True)`."""
    while isinstance(node, (ast.Call, ast.IfExp)):
        node = node.func if isinstance(node, ast.Call) else node.body
    return node


def ends_the_run(function: ast.expr) -> bool:
    """Whether a call never returns: `sys.exit`, `pytest.skip`, `self.skipTest`, `parser.error`."""
    if isinstance(function, ast.Name):
        return function.id in ("exit", "quit")
    if isinstance(function, ast.Attribute):
        base = function.value.id if isinstance(function.value, ast.Name) else ""
        return (base, function.attr) in _ENDS or function.attr == "skipTest"
    return False


def left_on_host(value: Value) -> Value:
    """What a function gives where there is no card: right for who is on the CPU, and nobody else gets it."""
    if value.kind == "tuple" and isinstance(value.elements, tuple):
        return replace(value, elements=tuple(map(left_on_host, value.elements)))
    return replace(value, device=UNKNOWN, made=()) if value.is_tensor and value.made else value


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
    ast.ImportFrom: note_import,
    ast.Break: Flow.break_,
    ast.Continue: Flow.continue_,
    ast.Match: Flow.match_,
    ast.FunctionDef: Flow.define,
    ast.AsyncFunctionDef: Flow.define,
    ast.ClassDef: Flow.define_class,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = Flow.try_
