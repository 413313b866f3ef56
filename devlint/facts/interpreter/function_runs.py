"""Running one function: from its parameters to what it returns, path by path, under the marks of its decorators."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import cached_property, reduce

from devlint.facts.events import Creation, Guards
from devlint.facts.frozen import replace
from devlint.facts.idioms import half_moved, returned_by_helpers, shared_modules
from devlint.facts.idioms.placeholders import is_empty
from devlint.facts.interpreter.factories import FROM_DATA
from devlint.facts.interpreter.machine import State, root
from devlint.facts.interpreter.operations import CPU_PLACE
from devlint.facts.interpreter.unread_calls import UnreadCalls
from devlint.facts.text import parametrized
from devlint.facts.text.defined import Function
from devlint.facts.text.handlers import EVERYTHING
from devlint.facts.text.late_bindings import ModuleLevel
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import chain, last_name
from devlint.facts.values import (
    CPU,
    HOME,
    MADE_ON_CPU,
    NONE,
    NOTHING,
    ONE_TENSOR,
    SOMEWHERE,
    Device,
    Place,
    Value,
    join,
    may_be_accelerator,
    merge,
)
from devlint.model import Origin

_ASKS = re.compile(r"\bNone\b|cpu|cuda|gpu|device|available")  # a default for nothing, or a branch for one device
_PLAIN = frozenset({"number", "bool", "string", "none", "list", "tuple", "dict", "ndarray"})
_TYPES = re.compile(r"[\"'](?:cpu|cuda|xpu|mps|npu)[\"':]")
#: How a decorator asks for a version of torch: `@implement_for("torch", "2.5")`, `@requires_version(...)`.
_OF_VERSIONS = re.compile(
    r"(?=.*(?:torch|requir|skip)).*(?:version|[\"'][<>=! ]*\d+\.\d+[\w.]*[\"']|torch_?\d)", re.DOTALL
)
#: Words in the names of functions whose results are on the host.
_HOST_NAME = re.compile(r"cpu|numpy|host|dummy|example")
#: Functions of `random` that give one number.
_DRAWS = frozenset({"randrange", "randint", "random", "uniform", "gauss"})
#: How a mark asks for a card of some kind: `compute_capability < (8, 0)`.
_CAPABILITY = re.compile(r"(?i)\w*capability\w*|\bsm_?\d\d\b|nccl|triton|cusparse\w*")


class FunctionRuns(UnreadCalls):
    """Adds `run`."""

    ended = State({})  # the state in which the last function that was run ended

    def run(
        self, function: Function, bound: dict[str, Value] | None, attributes: dict[str, Value] | None = None
    ) -> Value:
        """Interpret a function. `bound=None`: nothing is known of its arguments but what its own code shows."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        saved = (
            self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
            self.statement_value, self.breaks, self.continues, self.host, self.globals, self.in_init, self.nonlocals,
            self.snapshots, self.event_names, self.loop_names, self.state_of_run, self.handed_on,
            self.modules_given, self.moved_before, self.given_tensor, self.given_host,
        )  # fmt: skip
        caller = self.state
        if self.function is None and self.module_level:
            self.globals = self.state.env
        if self.function is None and function.owner is None:
            self.see_before(node.name, called=bound is not None)
        if self.function is not None:
            shared_modules.note(self, self.function.node, caller.env, ended=False)
        awaited, self.awaited = self.awaited, False  # who else calls the function does not want it to fail
        self.function, self.name, self.owner = function, function.name, function.owner
        self.loops, self.returns, self.yields, self.statement_value = 0, [], False, None
        self.breaks, self.continues, self.handed_on = [], [], {}
        self.modules_given, self.given_tensor = {}, {}
        if bound:
            self.modules_given = {name: v for name, v in bound.items() if v.kind == "module"}
            given = ((name, is_surely_tensor(v)) for name, v in bound.items())
            self.given_tensor = {name: is_tensor for name, is_tensor in given if is_tensor is not None}
        self.given_host = bound is not None and is_on_host(bound.values())
        self.moved_before = {}
        if node.name != "__init__" and not self.under_construction(function):
            self.in_init = False
        unmoved = function.owner is not None and function.owner.is_module and self.under_construction(function)
        self.host = self.host or self.runs_on_host(function) or unmoved
        default = caller.default if bound is not None else self.default_at_start(function, caller.default)
        self.state = State(dict(attributes or {}), card=caller.card, default=default)
        own = self.scan.functions.get(id(node))
        self.nonlocals = frozenset(own.nonlocals) if own is not None else frozenset()
        self.snapshots, self.event_names, self.loop_names, self.state_of_run = 0, set(), {}, object()
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
            if result is not None and len(node.name.strip("_")) and not self.yields:
                self.note_paths(function, result, self.returns)
                if self.handed_on and (parts := returned_by_helpers.handed_on(self)):
                    self.note_paths(function, reduce(merge, parts), parts)
            if result is None:
                result = NONE
            if self.yields:
                result = Value("object", elements=(result,))
            if not self.state.dead:
                self.note_moved()
            self.ended_moved = self.moved_before
            end = self.ended = self.state
            shared_modules.note(self, node, end.env)
            if not self.muted:
                self.facts.note_variables(function.name, end.env)
        finally:
            self.stack.pop()
            self.awaited = awaited
            (
                self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
                self.statement_value, self.breaks, self.continues, self.host, self.globals, self.in_init,
                self.nonlocals, self.snapshots, self.event_names, self.loop_names, self.state_of_run, self.handed_on,
                self.modules_given, self.moved_before, self.given_tensor, self.given_host,
            ) = saved  # fmt: skip
        if bound is not None:
            self.state.work, self.state.last, self.state.count = end.work, end.last, end.count
        if isinstance(node, ast.AsyncFunctionDef):
            return NOTHING
        return half_moved.returned(result, function.name)

    def see_before(self, name: str, called: bool) -> None:
        """What the module level binds after the last call of a function there is, in it, what it was at that call."""
        if name not in self.scan.handed and all(site.caller is not None for site in self.scan.calls.get(name, ())):
            return  # the module level does not call it
        late = self.module_level_names.late(name)
        if not late:
            return
        if called:
            self.seen_by_calls[name] = {path: value for path, value in self.globals.items() if root(path) in late}
        else:
            kept = {path: value for path, value in self.globals.items() if root(path) not in late}
            self.globals = {**kept, **self.seen_by_calls.get(name, {})}

    @cached_property
    def module_level_names(self) -> ModuleLevel:
        return ModuleLevel(self.scan)

    @cached_property
    def seen_by_calls(self) -> dict[str, dict[str, Value]]:
        return {}

    def note_moved(self) -> None:
        """The function is left here: the modules that it was given are where this path, or an earlier one, put them."""
        for name, given in self.modules_given.items():
            now = self.state.env.get(name)
            if now is not None and now.ident == given.ident:
                before = self.moved_before.get(name)
                if before is not None and before.device != now.device:
                    now = replace(now, device=join(before.device, now.device))
                self.moved_before[name] = now

    @cached_property
    def movers(self) -> dict[int, set[str]]:
        """The names of others than their own that functions call a move on, by the identity of the function's node."""
        return shared_modules.movers(self.scan)

    def default_at_start(self, function: Function, default: Value | None) -> Value | None:
        """The default device when nobody is seen to call a function: torch's, when it alone changes that."""
        if default is None or default.device:
            return default
        text = self.text(function.node)
        alone = all(text.count(n) == self.source.text.count(n) for n in ("set_default_device", "set_default_tensor"))
        return None if alone else default

    # -- what it returns -------------------------------------------------------------------------------------------------

    def note_paths(self, function: Function, result: Value, returns: list[Value]) -> None:
        """Emit `Meet` for a tensor made on the CPU that one path returns where others return an accelerator's."""
        if self.host or is_host_name(function.node.name):  # type: ignore[union-attr]
            return
        results = result.elements if result.kind == "tuple" and isinstance(result.elements, tuple) else (result,)
        for position, value in enumerate(results):
            if value.kind not in ("tensor", "list") or not value.is_tensor or not value.made or value.device == CPU:
                continue
            if CPU_PLACE not in value.device:
                continue
            elsewhere = frozenset(p for p in value.device if p != CPU_PLACE)
            if any(isinstance(p, Place) or p == SOMEWHERE for p in elsewhere):
                continue  # a branch asked for that device
            level = self.conflict(CPU, elsewhere)
            given = [v for r in returns if (v := component(r, position)) is not None]
            rest = [side for v in given for side in by_path(v, elsewhere) if not side.made]
            computed = [
                v for v in rest if v.is_tensor and v.device == elsewhere and not (v.moved and not is_created(v))
            ]
            if level is None or not computed or len(computed) < len(rest):
                continue
            bodies = [self.span(node) for node in (function.node, *returned_by_helpers.helpers(self, function))]
            for creation in value.made:
                if not any(body.start <= creation.span.start < body.end for body in bodies):
                    continue  # an item of a table that the object keeps, or what a caller made
                if not is_literal(creation) or is_empty(creation):
                    continue
                sized = creation.span in self.sized or self.depends_on_tensors(function, creation.place)
                if elsewhere == HOME and not sized:
                    continue  # an option of the function has something else made, which is for another use
                if creation.zero_dim or any(
                    creation in side.made and side.zero_dim
                    for v in given
                    for side in by_path(v, frozenset({CPU_PLACE}))
                ):
                    continue  # a scalar on the CPU combines with whatever the others give
                off = self.operand(creation.place, replace(value, device=CPU, made=(creation,)))
                because = (Origin(creation.span, MADE_ON_CPU), *computed[0].because[:2])
                other = replace(off, value=computed[0], text="what other paths return")
                self.emit_meet(creation.place, "paths", "returned", off, other, level, because)

    def depends_on_tensors(self, function: Function, place: ast.AST) -> bool:
        """Whether a condition around a place in a function asks for a tensor: `if values.numel() == 0:`."""
        evidence = self.evidence.get(id(function.node))
        tensors = {name for name, value in self.state.env.items() if value.is_tensor}
        if evidence is not None:
            tensors |= evidence.tensors | evidence.annotated
        for node in walk(function.node):
            if isinstance(node, (ast.If, ast.IfExp)) and holds(node, place) and not holds(node.test, place):
                if any(isinstance(n, ast.Name) and n.id in tensors for n in walk(node.test)):
                    return True
        return False

    # -- marks -----------------------------------------------------------------------------------------------------------

    def decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Guards:
        """The guards that a decorator puts on a function: `skipif(not torch.cuda.is_available())`, `@require_cuda`.

        One that names a version keeps the function for it: `@implement_for("torch", "2.5")`.
        """
        owner = self.function.owner if self.function is not None else None
        decorators = (*node.decorator_list, *(owner.node.decorator_list if owner is not None else ()))
        if not decorators and not self.file_holds and id(node) not in self.substitutes:
            return self.guards
        holds, kept_for = set(self.guards.holds) | self.file_holds, self.guards.kept_for
        for decorator in decorators:
            marked = self.marked(decorator)
            text = marked.lower()
            if _OF_VERSIONS.search(text) is not None and not parametrized.is_parametrize(decorator):
                kept_for = (*kept_for, marked)
            if "amp" in text or "autocast" in text:
                continue  # it switches a mode, it skips nothing
            if parametrized.is_parametrize(decorator) and len(_TYPES.findall(text)) > 1:
                continue  # it runs with each of them
            for type in ("cuda", "gpu", "xpu", "mps", "npu"):
                if type in text:
                    holds.add("cuda" if type == "gpu" else type)
        caught = EVERYTHING if id(node) in self.substitutes else self.guards.caught
        return replace(self.guards, holds=frozenset(holds), caught=caught, kept_for=kept_for)

    def marked(self, decorator: ast.expr) -> str:
        """The text of a decorator, with that of the mark which the module binds to its name: `sm80 = skipif(...)`."""
        text = self.text(decorator)
        skips = self.skips.get(text) if isinstance(decorator, ast.Name) else None
        return text if skips is None else f"{text} {_CAPABILITY.sub('cuda', skips)}"

    @cached_property
    def skips(self) -> dict[str, str]:
        """The marks that the module level binds to names, with the text of each: `sm80 = pytest.mark.skipif(...)`."""
        found: dict[str, str] = {}
        for node in self.scan.tree.body if self.scan.tree is not None and "skip" in self.source.text else ():
            bound = self.text(node.value) if isinstance(node, ast.Assign) else ""
            for target in node.targets if isinstance(node, ast.Assign) and "skip" in bound else ():
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, bound)
        return found


def is_surely_tensor(value: Value) -> bool | None:
    """Whether a value is one tensor, by more than a guess; None where it may be one."""
    if value.kind in _PLAIN:
        return False
    return True if value.kind in ONE_TENSOR and value.device and value.type_name is None else None


def is_on_host(given: Collection[Value]) -> bool:
    """Whether there are tensors among what a call gives, and nothing that is not surely in host memory."""
    return any(v.is_tensor for v in given) and all(
        v.device == CPU
        if v.is_tensor
        else v.kind in _PLAIN and not any(may_be_accelerator(each.device) for each in (v, *v.parts))
        for v in given
    )


def is_created(value: Value) -> bool:
    """Whether a tensor is where it is since it was made there: `torch.zeros(3, device=x.device)`."""
    return bool(value.because) and value.because[0].text.startswith("created on `")


def component(value: Value, position: int) -> Value | None:
    """An element of a returned tuple, or the value itself."""
    if value.kind == "tuple" and isinstance(value.elements, tuple):
        return value.elements[position] if position < len(value.elements) else None
    return value


def by_path(value: Value, elsewhere: Device) -> list[Value]:
    """What a returned value is on the paths of the last condition that tells it apart; a default for None is no such path.

    `if worst > 1: loss = torch.tensor([1.0])` returns what was computed, or what is made there.
    """
    if value.split is None or not value.made or _ASKS.search(value.split[0]) is not None:
        return [value]
    sides = value.split[1:]
    if not any(side.made and CPU <= side.device <= elsewhere | CPU for side in sides):
        return [value]
    return [
        replace(side, device=elsewhere, made=()) if side.device == elsewhere | CPU and side.made else side
        for side in sides
    ]


def is_literal(creation: Creation) -> bool:
    """Whether a tensor is made of what its code shows (sizes, constants, a number it draws), not converted from host data."""
    if creation.function not in FROM_DATA and not creation.function.endswith("Tensor"):
        return True
    first = creation.node.args[0] if creation.node.args else None
    while isinstance(first, (ast.List, ast.Tuple)):
        first = first.elts[0] if first.elts else ast.Constant(0)
    return isinstance(first, (ast.Constant, ast.UnaryOp)) or is_number_drawn(first)


def is_number_drawn(node: ast.expr | None) -> bool:
    """Whether an expression draws one number, as who explores does: `random.randrange(n)`, `env.action_space.sample()`."""
    if not isinstance(node, ast.Call):
        return False
    names = [last_name(part) for part in chain(node.func)]
    if names[1:2] == ["action_space"]:
        return names[0] == "sample"
    return names[-1:] == ["random"] and names[0] in _DRAWS and len(names) == 2


def is_host_name(name: str) -> bool:
    """Whether a function's name says that what it gives is on the host."""
    return _HOST_NAME.search(name.lower()) is not None
