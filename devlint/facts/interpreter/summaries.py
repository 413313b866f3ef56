"""Summaries: a function is run once for each kind of arguments, and equal calls take over what that did."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses, handed, ordering, spread
from devlint.facts.idioms.placeholders import handed_over
from devlint.facts.interpreter.factories import is_made_up
from devlint.facts.interpreter.function_runs import FunctionRuns
from devlint.facts.interpreter.machine import Machine, State, root
from devlint.facts.text.annotations import is_tensor_annotation
from devlint.facts.text.classes import KEPT
from devlint.facts.text.defined import Function, Summary
from devlint.facts.text.nodes import asks_name, holds
from devlint.facts.text.signatures import lacks_arguments, named_parameters, positional_names
from devlint.facts.values import COMPUTED, CPU, NOTHING, UNKNOWN, Place, Symbol, Value, may_be_accelerator, merge

DEPTH = 4  # calls of the file's own functions followed into each other
#: Names of what holds the settings of a run, and of devices.
_SETTINGS = re.compile(
    r"^(self\.)?(args?|opts?|options?|cfg|config|conf|hparams|hps|flags|params|settings)\b|device$", re.IGNORECASE
)
#: A file that places nothing by itself runs where it is tried out.
_PLACES = re.compile(r"\b(?:device|cuda|xpu|mps|npu)\b")
#: Names of functions that try out what their file defines.
_TRIES = re.compile(r"_?(?:self_?)?(?:test|demo|sanity)", re.IGNORECASE)
SIGNATURES = 8  # different arguments for which one function is run


class Summaries(FunctionRuns):
    """Adds `call_function`."""

    def call_function(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call | None = None,
        on_self: bool = False,
    ) -> Value:
        """Call a function of this file with known arguments: it is run with them, once per kind of arguments."""
        if isinstance(function.node, ast.Lambda):
            return NOTHING
        if is_stub(function.node):
            in_module = function.owner is not None and function.owner.is_module
            returns = function.node.returns
            gives = returns is None or is_tensor_annotation(returns, self.imports.names)
            if not (in_module and gives and self.assume) or node is None:
                return NOTHING
            return self.of_subclass(node, arguments)
        if node is not None and len(arguments) in (len(node.args), len(node.args) + 1):
            if lacks_arguments(function.node, node, len(arguments) - len(node.args), keywords):
                return NOTHING  # it raises
        function.callers.append(self.guards)
        attributes = {p: v for p, v in self.state.env.items() if p.startswith("self.")} if on_self else {}
        key, summary = self.known_call(function, arguments, keywords, attributes)
        bound = self.bound_arguments(function, arguments, keywords)
        if on_self and not self.host:  # while it is made, an object is where its `__init__` makes it
            for name, value in bound.items():
                known = function.given.get(name)
                function.given[name] = value if known is None else merge(known, value)
        if summary is None:
            if function in self.stack or len(self.stack) >= DEPTH or len(function.summaries) >= SIGNATURES:
                self.not_followed(function, bound, node, on_self)
                self.move_data(function, bound)
                if node is None or not self.assume:
                    return NOTHING
                return guesses.result(node.func, arguments, lambda: self.origin(node, COMPUTED))
            tries = self.tries_out(node)
            informing = any(map(informs, bound.values())) and not (tries and is_made_up(bound.values()))
            if informing and not self.under_construction(function):
                evidence = self.evidence_of(function)
                wanted = evidence.tensors | evidence.several
                for name in wanted:
                    self.note_given(function, name, bound.get(name, NOTHING))
                if all(name in bound and (bound[name].device or not tensor_like(bound[name])) for name in wanted):
                    function.called += 1  # nothing is left to assume
            trying, self.trying = self.trying, tries
            try:
                result = self.follow(function, key, bound, attributes, node, on_self)
            finally:
                self.trying = trying
            self.move_data(function, bound)
            return self.made_anew(after_kept(result, bound.values()), function, node)
        if summary.waits:
            self.state.count += summary.works
            self.wait()
        elif summary.works and node is not None:
            self.queue(node, f"`{function.node.name}` queues device work", "assume", None)
        self.apply(summary, function, node, on_self)
        self.move_data(function, bound)
        result = after_kept(self.without_symbols(summary.result, function, node, on_self), bound.values())
        return self.made_anew(handed.received(self, result, function, node, bound), function, node)

    def tries_out(self, node: ast.Call | None) -> bool:
        """Whether a call is part of how a file tries out what it defines, where others call it too: in a test of its own,
        below `if __name__ == "__main__"`, or in what is called there."""
        if self.trying or node is None:
            return self.trying
        if self.function is not None:
            return self.is_trial and self.places_something
        body = self.scan.tree.body if self.scan.tree is not None else ()
        tries = any(isinstance(each, ast.If) and asks_name(each) and holds(each, node) for each in body)
        return tries and self.places_something

    @cached_property
    def places_something(self) -> bool:
        """Whether the file speaks of a device."""
        return _PLACES.search(self.source.text) is not None

    @property
    def is_trial(self) -> bool:
        """Whether the function under analysis is one that tries out what its file defines, by its name."""
        function = self.function
        if function is None or function.owner is not None or _TRIES.match(self.name) is None:
            return False
        return not named_parameters(function.node.args)

    def move_data(self, function: Function, bound: dict[str, Value]) -> None:
        """The tensors that a function is given, and moves the data of, may be anywhere by every name."""
        for name in self.moved_data.parameters(function.node):
            tensors = [v for v in guesses.opened([bound.get(name, NOTHING)]) if v.is_tensor]
            for path, known in self.state.env.items() if tensors else ():
                self.state.env[path] = elsewhere(known, tensors)

    def made_anew(self, result: Value, function: Function, node: ast.Call | None) -> Value:
        """A module that a function makes is another one by each of its calls."""
        own = self.scan.functions.get(id(function.node))
        if node is None or result.kind != "module" or result.ident is None or own is None:
            return result
        marked = not isinstance(function.node, ast.Lambda) and function.node.decorator_list
        filed = any(isinstance(item.ctx, ast.Store) for item in own.subscripts)
        if marked or filed or not self.rebound.isdisjoint(own.bound):
            return replace(result, device=UNKNOWN, shared=True)  # it may be kept, moved and given again
        if own.stores:
            return result
        around, ident = self.span(function.node), self.span(node)
        if not around.start <= result.ident.start < around.end:
            return result
        if result.ident in self.constructions:
            self.constructions[ident] = self.constructions[result.ident]
        return replace(result, ident=ident)

    def of_subclass(self, node: ast.Call, arguments: list[Value]) -> Value:
        """What a module's method without a body is guessed to give; it rests on what was assumed of the tensors it is given."""
        found = guesses.result(node.func, arguments, lambda: self.origin(node, COMPUTED))
        first = next((v for v in arguments if v.kind != "module" and v.device == found.device), NOTHING)
        return replace(found, because=first.because[:1] or found.because) if guesses.is_guess(found) else found

    def known_call(
        self, function: Function, arguments: list[Value], keywords: dict[str, Value], attributes: dict[str, Value]
    ) -> tuple[object, Summary | None]:
        """The key of a call, and what an equal one did: one with the same new tensors, as long as there are not too many."""
        coarse = signature(arguments, keywords, self.state, attributes)
        values = (*arguments, *keywords.values())
        made = tuple(c.span for v in guesses.opened(values) for c in v.made)
        key = (coarse, made)
        summary = function.summaries.get(key)
        if summary is None and made and len(function.summaries) >= SIGNATURES // 2:
            summary = next((s for k, s in function.summaries.items() if isinstance(k, tuple) and k[0] == coarse), None)
        return key, summary

    def note_given(self, function: Function, name: str, given: Value) -> None:
        """What a parameter is given by the calls of this file: all of them must know it."""
        known = given if given.is_tensor and given.device and not guesses.is_guess(given) else None
        before = function.seen.get(name, known)
        function.seen[name] = merge(before, known) if before is not None and known is not None else None

    def follow(
        self,
        function: Function,
        key: object,
        bound: dict[str, Value],
        attributes: dict[str, Value],
        node: ast.Call | None,
        on_self: bool,
    ) -> Value:
        """Run a function for one signature, and remember what it does."""
        before = self.state.count
        result = self.run(function, bound, attributes)
        end, moved = self.ended, self.ended_moved
        summary = function.summaries[key] = Summary(result, card=end.card, default=end.default)
        summary.works = self.state.count > before
        summary.waits = summary.works and self.state.work is None
        for name, given in bound.items():
            now = moved.get(name)
            if now is not None and now.device != given.device:
                summary.moved[name] = now
        if on_self:
            summary.attributes = {p: v for p, v in end.env.items() if p.startswith("self.")}
        self.apply(summary, function, node, on_self)
        result = self.without_symbols(result, function, node, on_self)
        return handed.received(self, result, function, node, bound)

    def without_symbols(
        self, value: Value, function: Function, node: ast.Call | None, on_self: bool, home: Machine | None = None
    ) -> Value:
        """A result without the devices that only its function has a name for: those of arguments the call says nothing of.

        The `args.device` of a function that is given `options` is the caller's `options.device`. `home`: the interpreter
        of the file that defines the function.
        """
        if not value.device and value.elements is None:
            return value
        start = (home or self).span(function.node).start
        if not names_scope(value, start):
            return value
        names = {a.arg for a in named_parameters(function.node.args)}
        given: dict[str, str] | None = None

        def here(place: Place | Symbol) -> Place | Symbol | None:
            nonlocal given
            if not isinstance(place, Symbol) or place.scope != start or root(place.name) not in names:
                return place
            if given is None:
                pairs = self.argument_nodes(function, node, on_self) if node is not None else []
                given = {name: path for name, argument in pairs if (path := self.path(argument)) is not None}
            outer = given.get(root(place.name))
            if outer is None or "[" in outer or _SETTINGS.search(outer) is None:
                return None  # what else has a device may be anywhere
            path = outer + place.name[len(root(place.name)) :]
            return Symbol(path, self.scope_id(path))

        def known(value: Value) -> Value:
            elements = value.elements
            if isinstance(elements, tuple):
                elements = tuple(map(known, elements))
            elif elements is not None:
                elements = {key: known(element) for key, element in elements.items()}
            device = value.device
            if any(isinstance(p, Symbol) and p.scope == start for p in device):
                places = [here(p) for p in device]
                device = UNKNOWN if None in places else frozenset(p for p in places if p is not None)
            if device != value.device or elements != value.elements:
                return replace(value, elements=elements, device=device)
            return value

        return known(value)

    def apply(self, summary: Summary, function: Function, node: ast.Call | None, on_self: bool) -> None:
        """What a call leaves behind in the caller: moved modules, attributes of `self`, the current card."""
        self.state.card, self.state.default = summary.card, summary.default
        if on_self:
            self.state.env.update(summary.attributes)
        if summary.moved and node is not None:
            for name, argument in self.argument_nodes(function, node, on_self):
                path = self.path(argument)
                if name in summary.moved and path is not None:
                    now = summary.moved[name]
                    if self.optimizers and may_be_accelerator(now.device):
                        given = self.operand(argument, self.lookup(path) or now)
                        ordering.note_moved_within(self, node, function.node, given, now)
                    self.move_in_place(path, now)

    def argument_nodes(self, function: Function, node: ast.Call, on_self: bool) -> list[tuple[str, ast.expr]]:
        names = positional_names(function.node.args)[on_self:]
        pairs = list(zip(names, node.args, strict=False))
        return pairs + [(k.arg, k.value) for k in node.keywords if k.arg is not None]

    def not_followed(self, function: Function, bound: dict[str, Value], node: ast.Call | None, on_self: bool) -> None:
        """A call of the file's own function that is not looked into: it may do anything to what it is given."""
        if on_self:
            self.forget_self()
        if node is not None:
            for _, argument in self.argument_nodes(function, node, on_self):
                path = self.path(argument)
                value = self.lookup(path) if path is not None else None
                if path is not None and value is not None and value.kind == "module":
                    self.move_in_place(path, replace(value, device=UNKNOWN))
        self.state.work = None

    def forget_self(self) -> None:
        """A method that is not followed may have changed any attribute."""
        for path in [p for p in self.state.env if p.startswith("self.")]:
            del self.state.env[path]

    def bound_arguments(
        self, function: Function, arguments: list[Value], keywords: dict[str, Value]
    ) -> dict[str, Value]:
        spec = function.node.args
        names = positional_names(spec)
        bound: dict[str, Value] = dict(zip(names, arguments, strict=False))
        if spec.vararg is not None:
            bound[spec.vararg.arg] = Value("tuple", elements=tuple(arguments[len(names) :]))
        known = {*names, *(a.arg for a in spec.kwonlyargs)}
        bound.update({k: v for k, v in keywords.items() if k in known})
        if spec.kwarg is not None:
            options = spread.collected({k: v for k, v in keywords.items() if k not in known})
            if options is not None:
                bound[spec.kwarg.arg] = options
        positional = spec.defaults
        for name, default in zip(names[len(names) - len(positional) :], positional, strict=True):
            if name not in bound:
                bound[name] = self.default_value(default)
        for argument, keyword_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if argument.arg not in bound and keyword_default is not None:
                bound[argument.arg] = self.default_value(keyword_default)
        return {name: handed_over(value) for name, value in bound.items()}

    def default_value(self, node: ast.expr) -> Value:
        """A default was evaluated at the `def`: only what cannot change since is known at the call.

        A device that is written out, `torch.device("cpu")`, is one of these.
        """
        value = self.evaluate(node)
        if value.kind == "device" and value.device and all(isinstance(place, Place) for place in value.device):
            return value
        return value if isinstance(node, ast.Constant) or value.kind in ("namespace", "function", "class") else NOTHING


def names_scope(value: Value, start: int) -> bool:
    """Whether a value, or something in it, is where a variable of the scope that begins at `start` says."""
    if any(isinstance(place, Symbol) and place.scope == start for place in value.device):
        return True
    if value.elements is None:
        return False
    elements = value.elements if isinstance(value.elements, tuple) else value.elements.values()
    return any(names_scope(element, start) for element in elements)


def is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function has nothing in it but a docstring and its refusal to run: a subclass says what it gives."""
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Raise) and s.exc is not None and _says_abstract(s.exc))
        for s in node.body
    )


def _says_abstract(error: ast.expr) -> bool:
    error = error.func if isinstance(error, ast.Call) else error
    return isinstance(error, ast.Name) and error.id == "NotImplementedError"


def tensor_like(value: Value) -> bool:
    """Whether a value is, or may be, a tensor."""
    return value.is_tensor or value.kind == "unknown"


def informs(value: Value) -> bool:
    """Whether an argument tells a function something about devices."""
    return value.kind not in ("unknown", "number", "string", "bool", "none")


def signature(arguments: list[Value], keywords: dict[str, Value], state: State, attributes: dict[str, Value]) -> object:
    """What tells two calls apart as far as devices go."""
    return (
        tuple(map(brief, arguments)),
        tuple((k, brief(v)) for k, v in sorted(keywords.items())),
        tuple((p, brief(attributes[p])) for p in sorted(attributes)),
        state.card,
        state.default.device if state.default is not None else None,
    )


def brief(value: Value) -> object:
    """What tells an argument apart from another one as far as devices go."""
    device = value.device
    return (
        value.kind,
        tuple(sorted(map(str, device))) if device else (),
        value.zero_dim,
        value.type_name or "",
        tuple(map(brief, value.elements[:4])) if isinstance(value.elements, tuple) else held(value),
        value.ident,
        value.constant if value.kind == "bool" else None,
    )


def held(value: Value) -> object:
    """What tells an object apart by what its fields hold."""
    if value.kind != "object" or not isinstance(value.elements, dict):
        return None
    return tuple((name, brief(part)) for name, part in value.elements.items())


def elsewhere(value: Value, moved: Sequence[Value]) -> Value:
    """A value after some tensors moved: one of them, and what holds one, may be anywhere."""
    if isinstance(value.elements, tuple):
        parts = tuple(elsewhere(part, moved) for part in value.elements)
        return (
            value if all(a is b for a, b in zip(parts, value.elements, strict=True)) else replace(value, elements=parts)
        )
    same = any(value is each or (value.is_tensor and not set(value.made).isdisjoint(each.made)) for each in moved)
    return replace(value, device=UNKNOWN, made=(), split=None) if same else value


def after_kept(result: Value, given: Iterable[Value]) -> Value:
    """What a function gives for a tensor that does not move with its module: that one is the fault, not what follows."""
    kept = any(value.is_tensor and value.because and value.because[0].text == KEPT for value in given)
    return replace(result, device=UNKNOWN) if kept and result.device == CPU and not result.made else result
