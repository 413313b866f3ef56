"""Statements, branches, loops and calls of the file's own functions: the control flow of the device analysis."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from devlint import knowledge
from devlint.facts import guards as conditions
from devlint.facts.calls import FAMILY_KIND, Arguments
from devlint.facts.classes import ClassFacts, Unregistered
from devlint.facts.devices import parse_device
from devlint.facts.events import DeviceLiteral, Guards
from devlint.facts.expressions import Expressions
from devlint.facts.machine import Function, State, join_states
from devlint.facts.operations import BATCH, symbol
from devlint.facts.parameters import Evidence, is_tensor_annotation
from devlint.facts.values import (
    ACCELERATORS,
    CPU,
    HOME,
    NONE,
    NOTHING,
    UNKNOWN,
    Device,
    Place,
    Value,
    may_be_accelerator,
    merge,
    on,
)
from devlint.model import Origin

DEPTH = 4  # calls of the file's own functions followed into each other
SIGNATURES = 8  # different arguments for which one function is run
_MODULE_CONTAINERS = ("ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict")


class Flow(Expressions):
    """The whole interpreter."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.breaks: list[list[State]] = []
        self.continues: list[list[State]] = []
        self.ready: set[str] = set()
        self.done: set[int] = set()
        self.in_init = False
        self.file_holds: set[str] = set()  # device types that a mark on the whole file requires

    # -- blocks -------------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Run statements in order; a guard that ends with `return` or `raise` holds for the rest of the block."""
        saved = self.guards
        for statement in statements:
            if self.state.dead:
                break
            self.step(statement)
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement)
        self.guards = saved

    # -- assignment ---------------------------------------------------------------------------------------------------

    def assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        if value.kind in ("event", "tuple"):
            self.note_events(node)
        if self.function is None and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "pytestmark":
            marks = self.text(node.value).lower()
            self.file_holds |= {type for type in ("cuda", "xpu", "mps", "npu") if type in marks}
        for target in node.targets:
            self.assign_target(target, value, node.value, node)

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
        if node.value is not None:
            self.assign_target(node.target, self.evaluate(node.value), node.value, node)

    def assign_target(
        self, target: ast.expr, value: Value, source: ast.expr | None, statement: ast.stmt | None = None
    ) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, self.named(target.id, value, target))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value, source, statement)
        elif isinstance(target, ast.Attribute):
            self.assign_attribute(target, value, source, statement)
        elif isinstance(target, ast.Subscript):
            self.assign_item(target, value, source)
        elif isinstance(target, ast.Starred):
            self.assign_target(target.value, NOTHING, None, statement)

    def named(self, path: str, value: Value, target: ast.expr) -> Value:
        """A device that the code chooses gets a name: from here on it is the device of that variable."""
        if value.kind in ("device", "string") and (value.type_name or "").startswith(("chosen", "index:")):
            if len(value.device) != 1 or value.type_name == "chosen:accelerator":
                return replace(value, device=symbol(path, self.span(target).start))
        elif value.kind == "device" and len(value.device) != 1:
            return replace(value, device=symbol(path, self.span(target).start))
        return value

    def unpack(self, target: ast.Tuple | ast.List, value: Value, source: ast.expr | None, statement: ast.stmt | None) -> None:
        elements = value.elements if isinstance(value.elements, tuple) and value.kind in ("tuple", "list") else None
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        for index, element in enumerate(target.elts):
            if elements is not None and not starred and len(elements) == len(target.elts):
                given = elements[index]
            elif value.kind in ("tensors", "tensor"):
                given = self.element(value)
            elif value.type_name in ("comprehension", "zip"):
                given = self.element(value)
            else:
                given = NOTHING
            self.assign_target(element, given, None, statement)

    def assign_attribute(
        self, target: ast.Attribute, value: Value, source: ast.expr | None, statement: ast.stmt | None
    ) -> None:
        path = self.path(target)
        if path is None:
            self.evaluate(target.value)
            return
        if target.attr == "data" and value.is_tensor:
            base = self.path(target.value)
            known = self.lookup(base) if base is not None else None
            if base is not None and known is not None and known.is_tensor:
                self.bind(base, replace(known, device=value.device, because=value.because))
            return
        value = self.named(path, value, target)
        self.bind(path, value)
        if path.startswith("self.") and path.count(".") == 1 and self.owner is not None:
            self.register(self.owner, target.attr, value, target, source, statement)

    def assign_item(self, target: ast.Subscript, value: Value, source: ast.expr | None) -> None:
        base = self.evaluate(target.value)
        index = self.evaluate(target.slice)
        if base.is_tensor and base.kind != "tensors":
            receiver = self.operand(target.value, base)
            nodes = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            parts = list(index.elements) if isinstance(index.elements, tuple) and index.kind == "tuple" else [index]
            indices = [self.operand(n, v) for n, v in zip(nodes, parts, strict=False) if v.is_tensor]
            if value.is_tensor and source is not None and base.made and base.device == CPU:
                other = self.operand(source, value)
                level = self.conflict(CPU, value.device)
                if level is not None and not indices and value.zero_dim is not True:
                    because = (*base.because[:1], Origin(self.span(target), "filled from an accelerator here"))
                    self.emit_meet(target, "copy", "slice assignment", receiver, other, level, because)
            if indices:
                self.meet(target, [receiver, *indices], "index", "index", "index")
                if source is not None and value.is_tensor:
                    self.meet(target, [receiver, self.operand(source, value)], "index", "index assignment", "scalar")
            return
        path = self.path(target)
        if base.kind == "tensors" and path is None:
            whole = self.path(target.value)
            if whole is not None:
                self.bind(whole, NOTHING)
            return
        if source is not None and base.kind != "list":
            self.leave(source, value, "kept")
        container = self.path(target.value)
        if path is not None:
            self.bind(path, value)
            if base.kind == "dict" and container is not None and container.startswith("self.") and self.owner:
                if source is not None:
                    self.grow(self.owner, container[5:], value, target, source)
            return
        if container is not None and base.kind in ("list", "dict", "tuple"):
            known = self.element(base) if isinstance(base.elements, tuple) else None
            if isinstance(base.elements, dict):
                known = base.elements.get("*")
            if value.kind == "module" or value.is_tensor or known is not None:
                elements = {"*": value if known is None else merge(known, value)}
                self.state.env[container] = replace(base, kind="dict", elements=elements)
                if container.startswith("self.") and self.owner is not None and source is not None:
                    self.grow(self.owner, container[5:], value, target, source)

    def augmented(self, node: ast.AugAssign) -> None:
        value = self.evaluate(node.value)
        target = node.target
        current = self.evaluate(target) if not isinstance(target, ast.Name) else self.name_(target)
        if current.is_tensor:
            operands = [self.operand(target, current)]
            if value.is_tensor:
                operands.append(self.operand(node.value, value))
                self.meet(node_expr(node), operands, "inplace", "+=", "scalar", 0)
            self.work(node, "an operation is queued here", current.device)
            return
        if value.is_tensor or current.kind == "number":
            # `total = 0; total += loss`: from the first time on it is a tensor
            result = self.combine([self.operand(node.value, value)]) if value.is_tensor else current
            self.assign_target(target, result, None)
            return
        if current.kind == "list" and value.kind == "list":
            path = self.path(target)
            if path is not None:
                self.append(path, current, self.element(value))
            return
        self.assign_target(target, NOTHING, None)

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            path = self.path(target)
            if path is not None:
                self.state.env.pop(path, None)

    # -- registration on modules ----------------------------------------------------------------------------------------

    def register(
        self,
        owner: ClassFacts,
        name: str,
        value: Value,
        target: ast.expr,
        source: ast.expr | None,
        statement: ast.stmt | None,
    ) -> None:
        """`self.name = value`: what other methods will know of the attribute."""
        if not self.in_init:
            entry = owner.unregistered.get(name)
            if entry is not None and value.kind != "none" and entry.target is not target:
                entry.reassigned = True
            return
        if not owner.is_module:
            if value.is_tensor and value.device == HOME:
                value = replace(value, device=UNKNOWN, made=())
            elif value.kind in ("module", "parameter") and not value.moved:
                # whoever holds the object may move it, or the class may be a module by a base that is not seen here
                value = replace(value, device=UNKNOWN)
            owner.set_attribute(name, value)
            return
        if value.kind == "module":
            self.registered(owner, value)
            owner.set_attribute(name, replace(value, device=HOME if value.device else UNKNOWN, because=(), moved=False))
            self.unwrap(owner, source)
            return
        if value.kind in ("parameter", "buffer") or (value.is_tensor and name in owner.buffers):
            self.registered(owner, value)
            if value.kind not in ("parameter", "buffer"):
                value = replace(value, kind="buffer")
            owner.set_attribute(name, replace(value, device=HOME, made=(), because=(), moved=False))
            return
        what = holds(value)
        if value.is_tensor:
            if value.device == CPU and value.made and statement is not None and source is not None:
                origin = Origin(self.span(target), "kept as a plain attribute here, which does not move with the module")
                kept = replace(value, attribute=name, because=(origin, *value.because[:1]))
                owner.unregistered.setdefault(
                    name, Unregistered(statement, target, source, kept, "tensor", None)
                )
                owner.set_attribute(name, kept)
            else:
                owner.set_attribute(name, replace(value, device=UNKNOWN, made=(), because=()))
            return
        if what is not None and isinstance(source, (ast.List, ast.Tuple)) and all(map(is_self_attribute, source.elts)):
            what = None
        if what is not None and statement is not None and source is not None:
            container = "comprehension" if value.type_name == "comprehension" else value.kind
            owner.unregistered.setdefault(
                name,
                Unregistered(statement, target, source, value, what, container),  # type: ignore[arg-type]
            )
            owner.set_attribute(name, self.contained(value, name if what == "tensors" else None))
            return
        if value.kind in ("list", "dict") and source is not None and statement is not None:
            self.empty_containers[(owner.name, name)] = (statement, target, source, value)
        owner.set_attribute(name, value)

    def contained(self, value: Value, attribute: str | None) -> Value:
        """A plain container of an instance, as other methods see it: its tensors stay on the CPU, its modules are unknown."""

        def seen(element: Value) -> Value:
            if attribute is not None:
                return replace(element, attribute=attribute)
            return replace(element, device=UNKNOWN, made=())

        if isinstance(value.elements, tuple):
            return replace(value, elements=tuple(seen(e) for e in value.elements))
        if isinstance(value.elements, dict):
            return replace(value, elements={k: seen(e) for k, e in value.elements.items()})
        return value

    def registered(self, owner: ClassFacts, value: Value) -> None:
        """A parameter or submodule joins the module: its device is the module's when it is made."""
        if not value.device and value.kind == "module":
            known = value.type_name
            if known is not None and known.startswith("torch.nn."):
                return  # a module without parameters
        self.built.setdefault(owner.name, []).append(value.device)

    built: dict[str, list[Device]]
    empty_containers: dict[tuple[str, str], tuple[ast.stmt, ast.expr, ast.expr, Value]]

    def grow(self, owner: ClassFacts, name: str, value: Value, target: ast.expr, source: ast.expr) -> None:
        """`self.name.append(value)` or `self.name[k] = value` in `__init__`."""
        if not self.in_init or not owner.is_module:
            return
        what = kind_of(value)
        made = self.empty_containers.get((owner.name, name))
        if what is None or made is None or name in owner.unregistered:
            return
        statement, attribute, source, container = made
        kind = "dict" if container.kind == "dict" else "list"
        entry = Unregistered(statement, attribute, source, container, what, kind, appended=True)
        owner.unregistered[name] = entry
        owner.set_attribute(name, Value(container.kind))

    def append(self, path: str, container: Value, given: Value) -> None:
        super().append(path, container, given)
        if path.startswith("self.") and self.owner is not None:
            self.grow(self.owner, path[5:], given, ast.Name(id="_"), ast.Name(id="_"))

    def unwrap(self, owner: ClassFacts, source: ast.expr | None) -> None:
        """`self.x = nn.ModuleList(self.y)`: what is in `self.y` is registered after all."""
        if not isinstance(source, ast.Call):
            return
        for child in ast.walk(source):
            if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name) and child.value.id == "self":
                entry = owner.unregistered.get(child.attr)
                if entry is not None:
                    entry.wrapped = True

    # -- control flow ---------------------------------------------------------------------------------------------------

    def expression(self, node: ast.Expr) -> None:
        self.statement_value = node.value
        self.evaluate(node.value)
        self.statement_value = None
        if isinstance(node.value, ast.Call) and ends_the_run(node.value.func):
            self.state.dead = True

    def if_(self, node: ast.If) -> None:
        condition = conditions.read(node.test, self.qualify, self.evaluate, self.text)
        test = self.evaluate(node.test)
        if test.is_tensor:
            self.wait_for(test)
        entry, guards = self.state, self.guards
        then = entry.copy()
        self.state = then
        self.guards = self.under(condition)
        self.refine(condition.key)
        on_cpu = self.place(condition.on_cpu) | self.no_tensors(condition.no_tensor)
        self.block(node.body)
        then = self.state
        self.state = otherwise = entry.copy()
        negated = condition.negated()
        self.guards = self.under(negated)
        self.refine(negated.key)
        off_card = self.place(condition.else_on_cpu) | self.no_tensors(condition.else_no_tensor)
        if condition.unless_not or (only_calls(node.body) and then.work is None):
            # there is no device here, or the program itself says so by waiting in the other branch alone
            otherwise.work = None
        self.block(node.orelse)
        otherwise = self.state
        self.guards = guards
        restore(then, otherwise, on_cpu)
        restore(otherwise, then, off_card)
        if then.dead and not otherwise.dead:
            self.guards = self.under(negated)
        elif otherwise.dead and not then.dead:
            self.guards = self.under(condition)
        self.split_keys.add(condition.key)
        self.state = join_states(then, otherwise, condition.key)
        self.choose_devices(then, otherwise, condition, node)

    def place(self, on_cpu: set[str]) -> dict[str, tuple[Value, Value]]:
        """Values that a condition tells to be on the CPU here: before and after. A device takes what is on it along."""
        changed: dict[str, tuple[Value, Value]] = {}
        for path in on_cpu:
            value = self.lookup(path)
            if value is None or value.device == CPU or not (value.is_tensor or value.kind in ("device", "string")):
                continue
            same = {path: value}
            if value.kind != "tensor" and len(value.device) == 1:
                same = {p: v for p, v in self.state.env.items() if v.device == value.device}
            for other, known in same.items():
                told = replace(known, device=CPU, made=(), split=None)
                self.state.env[other] = told
                changed[other] = (known, told)
        return changed

    def no_tensors(self, paths: set[str]) -> dict[str, tuple[Value, Value]]:
        """Values that a condition tells to be no tensors here: nothing is known of them."""
        changed: dict[str, tuple[Value, Value]] = {}
        for path in paths:
            value = self.lookup(path)
            if value is not None and value.is_tensor:
                told = Value("unknown", type_name="no tensor")
                self.state.env[path] = told
                changed[path] = (value, told)
        return changed

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

    fallbacks: set[object]

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        iterated = self.evaluate(node.iter)
        element = self.element(iterated)
        if iterated.kind == "module" and iterated.elements is None:
            element = NOTHING

        outer = self.loop_names

        def head() -> None:
            self.assign_target(node.target, element, None)
            names = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
            scope = self.scope()
            first = self.span(node.body[0])
            env = self.state.env
            self.loop_names = {**outer, **{n: (first, scope, env[n]) for n in names if n in env and env[n].device}}

        self.loop(node.body, head)
        self.loop_names = outer
        if node.orelse:
            self.block(node.orelse)

    def while_(self, node: ast.While) -> None:
        def head() -> None:
            test = self.evaluate(node.test)
            if test.is_tensor:
                self.wait_for(test)

        self.loop(node.body, head)
        if any(isinstance(n, ast.Attribute) and n.attr == "query" for n in ast.walk(node.test)):
            self.wait()  # `while not event.query()`
        if node.orelse:
            self.block(node.orelse)

    def loop(self, body: Sequence[ast.stmt], head: object) -> None:
        """Run a body until nothing changes, at most twice: the first time from the entry, then from what it leaves."""
        entry = self.state
        joined = entry
        self.loops += 1
        guards = self.guards
        for _ in range(2 if self.loops <= 3 else 1):
            self.state = joined.copy()
            self.breaks.append([])
            self.continues.append([])
            head()  # type: ignore[operator]
            self.block(body)
            ends = [self.state, *self.continues.pop(), *self.breaks.pop()]
            self.guards = guards
            after = joined
            for end in ends:
                end.dead = end.dead and end is self.state
                after = join_states(after, end)
            if same_environment(after.env, joined.env):
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
        condition = conditions.read(node.test, self.qualify, self.evaluate, self.text)
        self.evaluate(node.test)
        self.guards = self.under(condition)

    def try_(self, node: ast.Try) -> None:
        entry, guards = self.state.copy(), self.guards
        self.guards = Guards(guards.holds, guards.fails, guards.tests, True)
        self.block(node.body)
        self.guards = guards
        self.block(node.orelse)
        end = self.state
        for handler in node.handlers:
            self.state = join_states(entry.copy(), replace_dead(end)).copy()
            if handler.name:
                self.bind(handler.name, NOTHING)
            self.block(handler.body)
            end = join_states(end, self.state)
        self.state = end
        dead = self.state.dead
        self.state.dead = False
        self.block(node.finalbody)
        self.state.dead = self.state.dead or dead

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        card, default = self.state.card, self.state.default
        for item in node.items:
            value = self.evaluate(item.context_expr)
            self.enter(item.context_expr, value)
            if item.optional_vars is not None:
                self.assign_target(item.optional_vars, value if value.kind != "device" else NOTHING, item.context_expr)
        self.block(node.body)
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
                is_index = isinstance(number, int) and not isinstance(number, bool)
                self.state.card = number if is_index else None  # type: ignore[assignment]
                self.card_is_set = True

    def match_(self, node: ast.Match) -> None:
        self.evaluate(node.subject)
        entry = self.state
        result: State | None = None
        for case in node.cases:
            self.state = entry.copy()
            for child in ast.walk(case.pattern):
                name = getattr(child, "name", None) or getattr(child, "rest", None)
                if isinstance(name, str):
                    self.bind(name, NOTHING)
            self.block(case.body)
            result = self.state if result is None else join_states(result, self.state)
        self.state = join_states(entry, result) if result is not None else entry

    # -- functions and classes ------------------------------------------------------------------------------------------

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A nested `def`, or one at module level (registered before, bound here)."""
        self.defaults(node)
        for decorator in node.decorator_list:
            self.evaluate(decorator)
        if self.function is None:
            self.bind(node.name, Value("function", type_name=node.name))
            return
        name = f"{self.name}.{node.name}"
        known = self.functions.get(name)
        if known is None:
            known = self.functions[name] = Function(node, name, self.owner)
        known.closure = {**self.function.closure, **self.state.env}
        self.bind(node.name, Value("function", type_name=name))

    def defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Defaults such as `device="cuda"` are noted as defaults, whoever uses the parameter."""
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.note_default(default)

    def note_default(self, node: ast.expr) -> None:
        self.in_default = True
        value = self.evaluate(node)
        self.in_default = False
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._emit_literal(node, parse_device(node.value), "default", None, "device")
        elif value.kind == "string":
            self.note_literal(node, value, "default", None, "device")

    def define_class(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.evaluate(decorator)
        self.bind(node.name, Value("class", type_name=node.name))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self.note_default(statement.value)
            elif isinstance(statement, ast.Assign):
                self.evaluate(statement.value)

    def prepare(self, class_: ClassFacts) -> None:
        """Run `__init__` once, so that the attributes are known."""
        if class_.name in self.ready:
            return
        self.ready.add(class_.name)
        for base in class_.local_bases:
            self.prepare(base)
        init = class_.methods.get("__init__")
        if init is None:
            return
        saved, self.in_init = self.in_init, True
        host, self.host = self.host, class_.is_module  # a module is built on one device
        try:
            self.run(self.method_function(class_, "__init__", init), None)
        finally:
            self.in_init, self.host = saved, host
        self.spoil_reassigned(class_)

    def spoil_reassigned(self, class_: ClassFacts) -> None:
        """Attributes that other methods assign are known only inside the method that does."""
        for name, method in class_.methods.items():
            if name == "__init__":
                continue
            for child in ast.walk(method):
                if (
                    isinstance(child, ast.Attribute)
                    and isinstance(child.ctx, ast.Store)
                    and isinstance(child.value, ast.Name)
                    and child.value.id == "self"
                ):
                    entry = class_.unregistered.get(child.attr)
                    if entry is not None and entry.target is child:
                        continue  # a helper of `__init__` sets it
                    if entry is not None:
                        entry.reassigned = True
                    known = class_.attributes.get(child.attr)
                    if known is not None and known.kind != "module":
                        class_.attributes[child.attr] = NOTHING

    def method_function(
        self, class_: ClassFacts, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Function:
        qualname = f"{class_.name}.{name}"
        known = self.functions.get(qualname)
        if known is None:
            known = self.functions[qualname] = Function(node, qualname, class_)
        return known

    # -- calls of the file's own things ---------------------------------------------------------------------------------

    def call_on(self, node: ast.Call, receiver: Value, function: ast.Attribute, arguments: object) -> Value:
        assert isinstance(arguments, Arguments)
        name = function.attr
        if isinstance(function.value, ast.Name) and function.value.id == "self" and self.owner is not None:
            if name in ("add_module", "register_module", "register_parameter", "register_buffer") and self.in_init:
                if arguments.nodes and not isinstance(arguments.nodes[0], ast.Constant):
                    for entry in self.owner.unregistered.values():
                        entry.wrapped = True  # registered one by one, under computed names
            if name in ("register_buffer", "register_parameter"):
                return self.call_register(node, name, arguments)
            found = self.owner.method(name)
            if found is not None:
                is_static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in found[1].decorator_list)
                target = self.method_function(found[0], name, found[1])
                values = arguments.values if is_static else [self.self_value(self.owner), *arguments.values]
                keywords = {k: v for k, (_, v) in arguments.keywords.items()}
                if arguments.star:
                    return NOTHING
                return self.call_function(target, values, keywords, node)
        if name == "add_argument":
            default = arguments.keywords.get("default")
            if default is not None:
                self.note_default(default[0])
        if receiver.kind == "object" and receiver.type_name in self.classes:
            found = self.classes[receiver.type_name].method(name)
            if found is not None:
                self.escape(node, arguments)
                return NOTHING
        return self.call_method(node, receiver, name, arguments)

    def call_register(self, node: ast.Call, name: str, arguments: Arguments) -> Value:
        given = arguments.get("name", 0)
        tensor = arguments.get("tensor" if name == "register_buffer" else "param", 1)
        if given is None or not isinstance(given[1].constant, str) or self.owner is None:
            return NONE
        attribute = given[1].constant
        kind = "buffer" if name == "register_buffer" else "parameter"
        value = tensor[1] if tensor is not None else NOTHING
        if kind == "buffer":
            self.owner.buffers.add(attribute)
        if value.kind != "none":
            self.owner.unregistered.pop(attribute, None)
            self.owner.attributes[attribute] = Value(kind, HOME, value.zero_dim)  # type: ignore[arg-type]
            self.built.setdefault(self.owner.name, []).append(value.device)
            self.bind(f"self.{attribute}", replace(value, kind=kind) if value.is_tensor else Value(kind, UNKNOWN))  # type: ignore[arg-type]
        return NONE

    def self_value(self, owner: ClassFacts) -> Value:
        if owner.is_module:
            return Value("module", CPU if self.host else HOME, type_name=owner.name)
        return Value("object", type_name=owner.name)

    def call_value(self, node: ast.Call, callee: Value, arguments: object) -> Value:
        assert isinstance(arguments, Arguments)
        if callee.kind == "namespace":
            return self.call_namespace(node, callee.type_name or "", arguments)
        if callee.kind == "function" and callee.type_name in self.functions and not arguments.star:
            keywords = {k: v for k, (_, v) in arguments.keywords.items()}
            return self.call_function(self.functions[callee.type_name], arguments.values, keywords, node)
        if callee.kind == "class" and callee.type_name in self.classes:
            return self.construct_own(node, self.classes[callee.type_name], arguments)
        if callee.kind == "module":
            return self.call_module(node, self.operand(node.func, callee), arguments)
        if callee.kind == "tensors" and callee.moved:
            # something that was moved and is now called: a module
            module = self.operand(node.func, replace(callee, kind="module", type_name="moved"))
            return self.call_module(node, module, arguments)
        self.escape(node, arguments)
        return NOTHING

    def construct_own(self, node: ast.Call, class_: ClassFacts, arguments: Arguments) -> Value:
        """An instance of a class of this file."""
        self.prepare(class_)
        because = (Origin(self.span(node), "created here"),)
        if class_.is_module:
            devices = self.built_devices(class_)
            device = UNKNOWN
            if devices is not None and all(d == CPU for d in devices) and devices:
                device = self.default_device().device
            if any(v.kind == "module" for _, v in arguments.every()):
                device = UNKNOWN
            return Value("module", device, type_name=class_.name, because=because)
        if class_.family == "Dataset":
            return Value("dataset", UNKNOWN, type_name=class_.name, because=because)
        if class_.family == "Optimizer":
            return Value("optimizer", UNKNOWN, type_name=class_.name, because=because)
        return Value("object", type_name=class_.name, because=because)

    def built_devices(self, class_: ClassFacts) -> list[Device] | None:
        devices = list(self.built.get(class_.name, ()))
        for base in class_.local_bases:
            inherited = self.built_devices(base)
            if inherited is None:
                return None
            devices += inherited
        if any(b not in ("torch.nn.Module", "torch.nn.modules.module.Module") for b in class_.bases if b not in self.classes):
            return None
        return devices

    def call_function(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call | None = None,
    ) -> Value:
        """Call a function of this file with known arguments: it is run with them, once per kind of arguments."""
        if function in self.stack or len(self.stack) >= DEPTH or isinstance(function.node, ast.Lambda):
            return NOTHING
        informative = any(v.kind not in ("unknown", "number", "string", "bool", "none") for v in arguments[1:]) or any(
            v.kind not in ("unknown", "number", "string", "bool", "none") for v in keywords.values()
        ) or (bool(arguments) and arguments[0].kind not in ("unknown", "number", "string", "bool", "none"))
        key = signature(arguments, keywords, self.state)
        if key in function.summaries:
            does, waits = function.effects.get(key, (False, False))
            if waits:
                self.wait()
                self.state.count += does
            elif does and node is not None:
                self.queue(node, f"`{function.node.name}` queues device work", "assume", None)
            return function.summaries[key]
        if len(function.summaries) >= SIGNATURES:
            return NOTHING
        function.summaries[key] = NOTHING
        bound = self.bound_arguments(function, arguments, keywords)
        if informative and not self.under_construction(function):
            wanted = self.evidence_of(function).tensors
            if all(name in bound and bound[name].kind != "unknown" for name in wanted):
                function.called += 1  # nothing is left to assume
        before = self.state.count
        result = self.run(function, bound)
        function.summaries[key] = result
        function.effects[key] = (self.state.count > before, self.state.work is None and self.state.count > before)
        return result

    def bound_arguments(
        self, function: Function, arguments: list[Value], keywords: dict[str, Value]
    ) -> dict[str, Value]:
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        bound: dict[str, Value] = dict(zip(names, arguments, strict=False))
        known = {*names, *(a.arg for a in spec.kwonlyargs)}
        bound.update({k: v for k, v in keywords.items() if k in known})
        positional = spec.defaults
        for name, default in zip(names[len(names) - len(positional) :], positional, strict=True):
            if name not in bound:
                bound[name] = self.evaluate(default)
        for argument, keyword_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if argument.arg not in bound and keyword_default is not None:
                bound[argument.arg] = self.evaluate(keyword_default)
        return bound

    def run(self, function: Function, bound: dict[str, Value] | None) -> Value:
        """Interpret a function. `bound=None`: nothing is known of its arguments but what its own code shows."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        saved = (
            self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
            self.statement_value, self.breaks, self.continues, self.host, self.globals, self.in_init,
        )  # fmt: skip
        caller = self.state
        if self.function is None and self.module_level:
            self.globals = self.state.env
        self.function, self.name, self.owner = function, function.name, function.owner
        self.loops, self.returns, self.yields, self.statement_value = 0, [], False, None
        self.breaks, self.continues = [], []
        if node.name != "__init__" and not self.under_construction(function):
            self.in_init = False
        self.file_holds: set[str] = set()  # device types that a mark on the whole file requires
        self.host = self.host or self.runs_on_host(function) or self.under_construction(function)
        self.state = State({}, card=caller.card, default=caller.default)
        if bound is not None:
            self.state.work, self.state.last, self.state.count = caller.work, caller.last, caller.count
        else:
            self.guards = self.decorated(node)
        self.stack.append(function)
        try:
            self.bind_parameters(function, bound)
            self.block(node.body)
            result: Value | None = None
            for value in self.returns:
                result = value if result is None else merge(result, value)
            if result is None:
                result = NONE
            if self.yields:
                result = Value("object", elements=(result,))
            end = self.state
        finally:
            self.stack.pop()
            (
                self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
                self.statement_value, self.breaks, self.continues, self.host, self.globals, self.in_init,
            ) = saved  # fmt: skip
        if bound is not None:
            self.state.work, self.state.last, self.state.count = end.work, end.last, end.count
        if isinstance(node, ast.AsyncFunctionDef):
            return NOTHING
        return replace(result, attribute=None, split=None) if result.split or result.attribute else result

    module_level = False
    default: Value | None = None  # the default device that module-level code sets

    def decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Guards:
        """The guards that a decorator puts on a function: `skipif(not torch.cuda.is_available())`, `@require_cuda`."""
        holds = set(self.guards.holds) | self.file_holds
        owner = self.function.owner if self.function is not None else None
        for decorator in (*node.decorator_list, *(owner.node.decorator_list if owner is not None else ())):
            text = self.text(decorator).lower()
            for type in ("cuda", "gpu", "xpu", "mps", "npu"):
                if type in text:
                    holds.add("cuda" if type == "gpu" else type)
        return Guards(frozenset(holds), self.guards.fails, self.guards.tests, self.guards.excepts)

    def runs_on_host(self, function: Function) -> bool:
        owner = function.owner
        if owner is not None and owner.on_host:
            return True
        name = function.name.rsplit(".", 1)[-1]
        return name.startswith("collate") or name in self.collators or name == "__getitem__"

    collators: set[str]

    def under_construction(self, function: Function) -> bool:
        """Whether a method runs inside `__init__` of its own class: the module has not moved yet."""
        return function.owner is not None and any(
            f.owner is function.owner and f.name.endswith(".__init__") for f in self.stack
        )

    def bind_parameters(self, function: Function, bound: dict[str, Value] | None) -> None:
        node = function.node
        assert not isinstance(node, ast.Lambda)
        spec = node.args
        every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
        owner = function.owner
        is_method = owner is not None and "." not in function.name[len(owner.name) + 1 :]
        is_static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
        evidence = self.evidence_of(function)
        home = CPU if self.host else HOME
        start = self.span(node).start
        for index, argument in enumerate(every):
            name = argument.arg
            if index == 0 and is_method and not is_static and owner is not None:
                is_class = name == "cls" or any(getattr(d, "id", "") == "classmethod" for d in node.decorator_list)
                self.state.env[name] = Value("class", type_name=owner.name) if is_class else self.self_value(owner)
                continue
            given = bound.get(name) if bound is not None else None
            if given is not None:
                # an argument that is given is never assumed to be somewhere, known or not
                self.state.env[name] = replace(given, split=None, attribute=None) if given.kind != "unknown" else NOTHING
                continue
            origin = Origin(self.span(argument), f"`{name}` is an argument, which may be on an accelerator")
            annotated = self.annotated_value(argument, home, origin, start)
            if annotated is not None:
                self.state.env[name] = annotated
            elif name in evidence.tensors and (self.assume or self.host) and self.knows_torch:
                self.state.env[name] = Value("tensor", home, None, because=(origin,))
            elif name in evidence.containers and self.assume and self.knows_torch and not self.host:
                self.state.env[name] = Value("tensors", home, None, because=(origin,))
            elif name in evidence.devices:
                self.state.env[name] = Value("device", symbol(name, start), because=(), type_name="argument")
            elif name in evidence.modules and self.assume:
                self.state.env[name] = Value("module", home, type_name=f"argument {name}", because=(origin,))
            else:
                self.state.env[name] = NOTHING
        for extra in (spec.vararg, spec.kwarg):
            if extra is not None:
                self.state.env[extra.arg] = NOTHING

    def evidence_of(self, function: Function) -> Evidence:
        """The uses of a function's parameters, read once."""
        node, owner = function.node, function.owner
        evidence = self.evidence.get(id(node))
        if evidence is None:
            is_method = owner is not None and "." not in function.name[len(owner.name) + 1 :]
            forward = owner is not None and owner.is_module and is_method and not function.name.endswith(".__init__")
            evidence = self.evidence[id(node)] = Evidence(node, self.imports.names, forward)
        return evidence

    def annotated_value(self, argument: ast.arg, home: Device, origin: Origin, start: int) -> Value | None:
        """What an annotation with a class of torch says: a module, a loader, an optimizer, a device, a dtype."""
        node = argument.annotation
        if node is None or is_tensor_annotation(node):
            return None
        while isinstance(node, ast.Subscript):
            name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
            if name != "Optional":
                break
            node = node.slice
        if isinstance(node, ast.BinOp):
            sides = [s for s in (node.left, node.right) if not (isinstance(s, ast.Constant) and s.value is None)]
            if len(sides) != 1:
                return None
            node = sides[0]
        if isinstance(node, ast.Subscript):
            node = node.value
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        qualname = self.qualify(node)
        if qualname is None:
            return None
        if qualname == "torch.device":
            return Value("device", symbol(argument.arg, start), type_name="argument")
        if qualname == "torch.dtype":
            return Value("dtype")
        known = knowledge.cls(qualname)
        kind = FAMILY_KIND.get(known.family) if known is not None else None
        if kind == "module":
            return Value("module", home if self.assume else UNKNOWN, type_name="torch.nn.Module", because=(origin,))
        if kind == "loader":
            text = Origin(origin.span, "its batches come from host memory")
            return Value("loader", CPU, type_name=BATCH, because=(text,))
        if kind in ("optimizer", "scheduler", "dataset", "generator", "scaler", "distribution"):
            return Value(kind, UNKNOWN, type_name=qualname)
        return None


def ends_the_run(function: ast.expr) -> bool:
    """Whether a call never returns: `sys.exit`, `pytest.skip`, `self.skipTest`, `parser.error`."""
    if isinstance(function, ast.Name):
        return function.id in ("exit", "quit")
    if isinstance(function, ast.Attribute):
        base = function.value.id if isinstance(function.value, ast.Name) else ""
        return (base, function.attr) in _ENDS or function.attr == "skipTest"
    return False


_ENDS = {("sys", "exit"), ("os", "_exit"), ("pytest", "skip"), ("pytest", "exit"), ("parser", "error")}


def only_calls(body: Sequence[ast.stmt]) -> bool:
    return all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in body)


def restore(state: State, other: State, told: dict[str, tuple[Value, Value]]) -> None:
    """After a condition told where a tensor is: where both branches left it alone it is what it was before."""
    for path, (before, after) in told.items():
        if state.env.get(path) is after and other.env.get(path) is before:
            state.env[path] = before


def signature(arguments: list[Value], keywords: dict[str, Value], state: State) -> object:
    """What tells two calls apart as far as devices go."""

    def brief(value: Value) -> object:
        elements: object = None
        if isinstance(value.elements, tuple):
            elements = tuple(brief(v) for v in value.elements[:4])
        return value.kind, value.device, value.zero_dim, value.type_name, elements

    return (
        tuple(brief(v) for v in arguments),
        tuple(sorted((k, brief(v)) for k, v in keywords.items()) if keywords else ()),
        state.card,
        state.default.device if state.default is not None else None,
    )  # type: ignore[return-value]


def is_self_attribute(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def kind_of(value: Value) -> str | None:
    if value.kind == "module":
        stateless = not value.device and (value.type_name or "").startswith("torch.nn.")
        return None if stateless or value.moved else "modules"
    if value.kind == "parameter":
        return None if value.type_name == "borrowed" else "parameters"
    if value.kind == "tensor" and value.device == CPU:
        return "tensors"
    return None


def holds(value: Value) -> str | None:
    """What a plain container holds that a module should register: modules, parameters or tensors."""
    if value.kind not in ("list", "tuple", "dict"):
        return None
    elements = value.elements
    inner = list(elements.values()) if isinstance(elements, dict) else list(elements or ())
    if not inner:
        return None
    kinds = {kind_of(v) for v in inner}
    if kinds == {"modules"} or ("modules" in kinds and kinds <= {"modules", None} and value.kind != "dict"):
        return "modules"
    if kinds == {"parameters"}:
        return "parameters"
    if kinds == {"tensors"}:
        return "tensors"
    return None


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
    return node  # type: ignore[return-value]


_STATEMENTS = {
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


