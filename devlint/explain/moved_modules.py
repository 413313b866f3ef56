"""Whether the module that a failing line calls was moved: a name that nothing moves, a plain list that no move reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from devlint.explain.bindings import Binding, bindings, own_nodes, returned, stores
from devlint.explain.calls import arguments_for, calls_of, has_parameter
from devlint.explain.resolving import Resolver
from devlint.explain.sources import File, Files
from devlint.explain.suspects import Context, Step, Suspect, Trail, given, step
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.references import is_self_attribute, last_name

_STEPS = 3_000  # nodes that one search looks at
FAINT = 0.08  # a weight below which nothing is followed
_DEPTH = 14  # places that one way may pass
CALLERS = 6  # calls of one function that are looked at where no frame shows which it was
_UNSEEN = 0.5  # the share that is left where no frame shows that this is the module that failed
_OWNERS = 4  # modules inside each other that are looked at


class ModuleSearch(Resolver):
    """Adds `module`, and what every search remembers. `frames`: of each frame of the user, the outermost first, its file, the
    statement and the row."""

    def __init__(self, files: Files, frames: list[tuple[File, ast.stmt, int]]) -> None:
        super().__init__(files)
        self.frames = frames
        self.found: dict[tuple[str, int], Suspect] = {}
        self.noted = 0  # how often something was remembered, or would have been again
        self._steps = 0

    def note(self, file: File, node: ast.AST, text: str, trail: Trail, on_host: bool = True) -> None:
        """Remember a place, or that it is likelier than it was."""
        self.note_at(step(file, node, text), trail, on_host)

    def note_at(self, place: Step, trail: Trail, on_host: bool = True, of_module: bool = False) -> None:
        """The same of a place that is known already."""
        self.noted += 1
        suspect = Suspect(place, trail, on_host, of_module)
        known = self.found.get(suspect.key)
        if known is None or known.weight < suspect.weight:
            self.found[suspect.key] = suspect

    def note_module(self, file: File, node: ast.AST, text: str, trail: Trail) -> None:
        """Remember a place that leaves a module on the CPU."""
        self.note_at(step(file, node, text), trail, of_module=True)

    def is_lost(self, trail: Trail) -> bool:
        """Whether a way is too faint, or too long, to be followed on; one more step is counted."""
        self._steps += 1
        return self._steps > _STEPS or trail.weight < FAINT or len(trail.steps) > _DEPTH

    def context(self, level: int) -> Context:
        """The function that a frame is in."""
        file, statement, _ = self.frames[level]
        return Context(file, file.function_of(statement), level)

    def module(self, node: ast.expr, at: Context, trail: Trail) -> None:
        """Follow a module that is called to where it should have been moved or registered."""
        if self.is_lost(trail):
            return
        if isinstance(node, ast.Call):
            if self.makes_module(node, at):
                inside = at.function is not None and at.function.name == "forward"
                text = "the module that is created here stays on the CPU until it is moved"
                self.note_module(at.file, node, text, trail.fainter(1.1 if inside else 0.8))
            return
        if isinstance(node, ast.Subscript):
            self.module(node.value, at, trail)
        elif isinstance(node, ast.Name):
            self._named_module(node, at, trail)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "self" and at.function is not None:
                owner = at.file.class_of(at.function)
                if owner is not None:
                    self._held_module(node.attr, owner, at, trail)
            else:
                self.module(node.value, at, trail.fainter(0.9))
        elif isinstance(node, ast.Attribute):
            self.module(node.value, at, trail.fainter(0.9))

    def _named_module(self, node: ast.Name, at: Context, trail: Trail) -> None:
        for scope in (at.function, at.file.tree):
            if scope is None:
                continue
            for binding in reversed(bindings(scope).get(node.id, [])):
                if binding.turn:
                    self.module(binding.value, at, trail.fainter(0.95))
                    return
                value = binding.value
                if isinstance(value, ast.Call) and self.makes_module(value, at):
                    if not self.is_moved(node.id, at):
                        text = f"nothing moves the module `{node.id}`"
                        self.note_module(at.file, binding.place, text, trail.fainter(0.85))
                    return
                if isinstance(value, (ast.Subscript, ast.Attribute)):
                    self.module(value, at, trail.fainter(0.95))
                    return
                if isinstance(value, ast.Call) and self._is_left(node.id, value, scope, at):
                    text = f"nothing moves the module `{node.id}`"
                    self.note_at(bound_module(at.file, binding, node.id, text), trail.fainter(0.8), of_module=True)
                    return
        if at.function is not None and has_parameter(at.function, node.id):
            for call, caller in self.callers_of(at):
                for argument in arguments_for(call, at.function, node.id):
                    self.module(argument, caller, trail.fainter(0.9).via(given(caller.file, call, node.id)))

    def _is_left(self, name: str, made: ast.Call, scope: ast.AST, at: Context) -> bool:
        """Whether neither a function, nor the project's function that makes what it calls a name, moves the module.

        That it is one is known: it was called, or its parameters were asked for.
        """
        if _is_moved_in(name, scope) or any(
            isinstance(n, ast.Attribute) and n.attr in OFF_HOST for n in ast.walk(made)
        ):
            return False
        known = self.callee(made.func, at)
        if known is None:
            return any(is_asked_as_module(n, name) for n in own_nodes(scope))
        names = {value.id for value in returned(known[1]) if isinstance(value, ast.Name)}
        return bool(names) and not any(_is_moved_in(each, known[1]) for each in names)

    def _held_module(self, name: str, owner: ast.ClassDef, at: Context, trail: Trail) -> None:
        for home, class_ in self.lineage(at.file, owner):
            found = stores(class_, name)
            if not found:
                continue
            is_module = self.is_module_class(home, class_)
            for store in found:
                inside = Context(home, store.method)
                made = store.value
                held = _held(made)
                appended = store.added and any(_is_plain_list(s.value) for s in found)
                if is_module and (any(self.is_module(each, inside) for each in held) or appended):
                    kind = "dict" if isinstance(made, (ast.Dict, ast.DictComp)) else "list"
                    text = f"`self.{name}` is a plain {kind}: `.to()` of the module does not move the modules in it"
                    first = next((s for s in found if not s.added), store)
                    self.note_module(home, first.node, text, trail.fainter(1.1))
                    return
                if is_module:
                    continue
                made_here = isinstance(made, ast.Call) and self.makes_module(made, inside)
                if made_here and not self.is_moved(f"self.{name}", inside):
                    self.note_module(home, store.node, f"nothing moves the module `self.{name}`", trail.fainter(0.8))
                    return
                if isinstance(made, ast.Name):
                    self._named_module(
                        made, inside, trail.fainter(0.9).via(step(home, store.node, f"`self.{name}` is set here"))
                    )
            if is_module and at.call is None and at.level <= 0:
                self._holders(home, owner, trail.fainter(0.9))
            elif is_module:  # it moves with its owner: where is that?
                for call, caller in self.callers_of(at):
                    self.module(call.func, caller, trail.fainter(0.92).via(step(caller.file, call, "called here")))
            return

    def _holders(self, file: File, class_: ast.ClassDef, trail: Trail) -> None:
        """Where the modules of a class are kept: in a plain list, under a name that nothing moves, or in another module."""
        if len(trail.steps) > _OWNERS or self.is_lost(trail):
            return
        for home, call in islice(self.calls_by_name(file, class_.name), CALLERS):
            statement = home.statement_of(call)
            inside = Context(home, home.function_of(call))
            made_at = step(home, call, f"`{class_.name}` is created here")
            target = _kept_in(statement)
            owner = home.class_of(call)
            if target is not None and is_self_attribute(target) and owner is not None:
                assert isinstance(target, ast.Attribute)
                before = self.noted
                self._held_module(target.attr, owner, Context(home, inside.function), trail.fainter(0.9).via(made_at))
                if self.noted > before:
                    return
            elif isinstance(target, ast.Name):
                self._named_module(target, inside, trail.fainter(_UNSEEN).via(made_at))

    def callers_of(self, at: Context) -> Iterator[tuple[ast.Call, Context]]:
        """The calls that may have run a function: the one on the way, those on the outer frame's line, or any by its name."""
        if at.call is not None:
            yield at.call[1], at.call[0]
        elif at.level > 0 and at.function is not None:
            for call in calls_of(self.frames[at.level - 1][1], at.function.name):
                yield call, self.context(at.level - 1)
        elif at.function is not None:
            for file, call in islice(self.calls_by_name(at.file, at.function.name), CALLERS):
                yield call, Context(file, file.function_of(call))


#: Methods that modules have, and tensors and loaders have not.
_OF_MODULES = frozenset(
    {
        "load_state_dict",
        "state_dict",
        "parameters",
        "named_parameters",
        "eval",
        "train",
        "children",
        "modules",
        "zero_grad",
    }
)


def is_asked_as_module(node: ast.AST, name: str) -> bool:
    """Whether a node asks a name for what modules alone have: `net.eval()`, `net.load_state_dict(..)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _OF_MODULES
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
    )


def bound_module(file: File, binding: Binding, name: str, text: str) -> Step:
    """The place at which a module is bound to a name."""
    return replace(step(file, binding.place, text), kind="bound", name=name)


def _is_moved_in(name: str, scope: ast.AST) -> bool:
    """Whether a function moves what a name is, or wraps it in something that does."""
    for node in own_nodes(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OFF_HOST:
            inside = node.func.value
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(inside)):
                return True
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            if any(isinstance(n, ast.Attribute) and n.attr in OFF_HOST for n in ast.walk(node.value)):
                return True
    return False


def _kept_in(statement: ast.stmt) -> ast.expr | None:
    """What a statement keeps something new in: the target of an assignment, the list of an `append`."""
    if isinstance(statement, ast.Assign):
        return statement.targets[0]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr == "append":
            return func.value
    return None


def _held(node: ast.expr) -> list[ast.expr]:
    """What a plain list or dict that the code writes down holds."""
    if isinstance(node, ast.List):
        return node.elts
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.DictComp):
        return [node.value]
    return [node.elt] if isinstance(node, ast.ListComp) else []


def _is_plain_list(node: ast.expr) -> bool:
    return isinstance(node, ast.List) or (isinstance(node, ast.Call) and last_name(node.func) == "list")
