"""Where the values on a failing line come from: a search back through bindings, calls and the frames of the traceback.

That the line failed is known, so the question is not whether the values may be on two devices but which of them stayed
behind. Each name is followed to what bound it, an argument to the call that the next outer frame shows, an attribute to the
statements that set it, a call of the project's own to what it returns; until something makes a tensor, moves one, or takes it
from a loader. What is found is a `Suspect`, the less likely the longer and the more doubtful the way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from devlint.explain.bindings import Binding, Store, bindings, dominates, own_nodes, returned, stores
from devlint.explain.calls import arguments_for, calls_of, has_parameter
from devlint.explain.made_tensors import TURNS, CallSearch
from devlint.explain.moved_modules import CALLERS, FAINT
from devlint.explain.sources import File, Files, Plain
from devlint.explain.suspects import DIRECT, Context, Trail, bound, given, step
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import default_of

_WORTH_CALLERS = 0.2  # a weight from which on callers are looked for that no frame shows
_LONG = 3  # rows that a comprehension may have
_CONFIG = frozenset(
    {
        "args", "arg", "opt", "opts", "cfg", "config", "conf", "hparams", "hps", "flags", "FLAGS", "params", "options", "np",
        "math", "os",
    }
)  # fmt: skip
_PLAIN_ATTRIBUTES = frozenset({"shape", "dtype", "device", "ndim", "size", "training", "requires_grad", "is_cuda"})


class Search(CallSearch):
    """One search from a failing line."""

    def __init__(self, files: Files, frames: list[tuple[File, ast.stmt, int]]) -> None:
        super().__init__(files, frames)
        self._seen: dict[tuple[int, int], float] = {}

    def value(self, node: ast.expr, at: Context, trail: Trail = DIRECT, part: int | None = None) -> None:
        """Follow what an expression evaluates to. `part`: only that element of it is used."""
        key = (id(node), id(at.call[1]) if at.call is not None else at.level)
        if self.is_lost(trail) or self._seen.get(key, 0.0) >= trail.weight:
            self.noted += 1  # it was, or would be, followed elsewhere
            return
        self._seen[key] = trail.weight
        if isinstance(node, ast.Name):
            self.name(node, at, trail)
        elif isinstance(node, ast.Attribute):
            self.attribute(node, at, trail)
        elif isinstance(node, ast.Call):
            self.call(node, at, trail, part)
        elif isinstance(node, ast.Subscript):
            self.value(node.value, at, trail.fainter(0.97))
            if not isinstance(node.slice, (ast.Constant, ast.Slice)):
                self.value(node.slice, at, trail.fainter(0.6))
        elif isinstance(node, (ast.Tuple, ast.List)) and part is not None and part < len(node.elts):
            self.value(node.elts[part], at, trail)
        elif isinstance(node, (ast.Lambda, ast.Constant, ast.JoinedStr)):
            pass
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            self.value(node.elt, at, trail.fainter(0.95))
            for generator in node.generators:
                for test in generator.ifs:
                    self.value(test, at, trail.fainter(0.9))
        elif isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            pass
        elif isinstance(node, ast.BinOp):  # what is computed first fails first
            self.value(node.left, at, trail if isinstance(node.left, ast.BinOp) else trail.fainter(0.97))
            self.value(node.right, at, trail.fainter(0.97))
        elif isinstance(node, ast.IfExp):
            self.value(node.body, at, trail.fainter(0.9))
            self.value(node.orelse, at, trail.fainter(0.9))
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.value(child, at, trail.fainter(0.97))

    def name(self, node: ast.Name, at: Context, trail: Trail) -> None:
        scope: ast.AST | None = at.function
        while scope is not None:
            if self._bound(node, scope, at, trail):
                return
            if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and has_parameter(scope, node.id):
                inside = Context(at.file, scope, at.level, at.call) if scope is at.function else Context(at.file, scope)
                self.parameter(node, scope, inside, trail)
                return
            scope = at.file.function_of(scope)
        if not self._bound(node, at.file.tree, at, trail.fainter(0.95)):
            self._imported(node, at, trail.fainter(0.95))

    def _imported(self, node: ast.Name, at: Context, trail: Trail) -> None:
        """Follow what another file of the project binds a name to that this one imports."""
        home = self.files.home_of(at.file, node.id)
        if home is not None:
            for binding in bindings(home.tree).get(node.id, []):
                self.value(
                    binding.value, Context(home, None), trail.via(bound(home, binding.place, node.id)), binding.part
                )

    def _bound(self, node: ast.Name, scope: ast.AST, at: Context, trail: Trail) -> bool:
        """Follow the bindings of a name in one scope that reach a place. Whether one surely does."""
        every = bindings(scope).get(node.id, [])
        here = Context(at.file, scope if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else None,
                       at.level if scope is at.function else -1, at.call if scope is at.function else None)  # fmt: skip
        statement = at.file.statement_of(node)
        near = scope is at.function or (at.function is None and isinstance(scope, ast.Module))
        before = [b for b in every if not near or b.row < node.lineno or _encloses(b.node, node)]
        before = [b for b in before if b.node is not statement or isinstance(b.node, ast.For)]
        if not before and near:
            loops = {n for n in at.file.around(node) if isinstance(n, (ast.For, ast.AsyncFor, ast.While))}
            before = [b for b in every if loops.intersection(at.file.around(b.node))]  # of an earlier turn
            before = [b for b in before if b.node is not statement and not isinstance(b.node, ast.comprehension)]
        self._dropped(node, scope, at, trail)
        if near:
            self._appended(node, scope, here, trail)
        for binding in reversed(before):
            if trail.weight < FAINT:
                break
            if isinstance(binding.node, ast.comprehension) and not any(
                binding.node in getattr(n, "generators", ()) for n in at.file.around(node)
            ):
                continue
            place = bound(at.file, binding.place, node.id)
            if binding.turn:
                self.turn(binding, here, trail.via(place))
            else:
                self.value(binding.value, here, trail.via(place), binding.part)
            sure = dominates(at.file, binding.node, node) or _is_conditional_move(binding, at.file)
            if near and sure and not isinstance(binding.node, ast.AugAssign):
                return True
            trail = trail.fainter(0.85)
        return bool(before) and not (
            isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and has_parameter(scope, node.id)
        )

    def _dropped(self, node: ast.Name, scope: ast.AST, at: Context, trail: Trail) -> None:
        """A move of the name whose result is dropped: `x.to(device)` as a statement."""
        for statement, _, func in _statements_on(node, scope):
            if func.attr in OFF_HOST and not self.is_module(func.value, at):
                text = f"the result of `{node.id}.{func.attr}(..)` is not used: a tensor is not moved in place"
                self.note(at.file, statement, text, trail.fainter(1.05))

    def _appended(self, node: ast.Name, scope: ast.AST, at: Context, trail: Trail) -> None:
        """Follow what is put into a list of this name before a place: `parts.append(x)`."""
        for statement, call, func in _statements_on(node, scope):
            if func.attr in ("append", "extend", "insert") and call.args:
                place = step(at.file, statement, f"put into `{node.id}` here")
                self.value(call.args[-1], at, trail.fainter(0.95).via(place))

    def turn(self, binding: Binding, at: Context, trail: Trail) -> None:
        """What a loop takes one element of after the other."""
        iterated = binding.value
        part = binding.part
        while isinstance(iterated, ast.Call) and last_name(iterated.func) in TURNS:
            callee = last_name(iterated.func)
            if callee in ("items", "values", "__iter__") and isinstance(iterated.func, ast.Attribute):
                iterated = iterated.func.value
            elif iterated.args:
                if callee == "zip" and part is not None and part < len(iterated.args):
                    iterated = iterated.args[part]
                else:
                    iterated = iterated.args[0]
            else:
                return
        if isinstance(iterated, ast.Call) and last_name(iterated.func) == "range":
            return
        if self.is_loader(iterated, at):
            self.from_loader(at, trail.fainter(0.85))
            return
        self.value(iterated, at, trail.fainter(0.95))

    def attribute(self, node: ast.Attribute, at: Context, trail: Trail) -> None:
        base = node.value
        if node.attr in _PLAIN_ATTRIBUTES and (trail.steps or not isinstance(base, ast.Call)):
            return
        if isinstance(base, ast.Name) and base.id == "self" and at.function is not None:
            owner = at.file.class_of(at.function)
            if owner is not None:
                self.own_attribute(node, node.attr, at.file, owner, at, trail)
            return
        if isinstance(base, ast.Name) and (base.id in _CONFIG or at.file.imports.names.get(base.id)):
            return
        made = self.class_of_name(base, at) if isinstance(base, ast.Name) else self.class_of_attribute(base, at)
        if made is not None:
            before = self.noted
            self.own_attribute(node, node.attr, made[0], made[1], at, trail)
            if self.noted > before:
                return
        self.value(base, at, trail.fainter(0.9))

    def own_attribute(
        self, node: ast.AST, name: str, file: File, owner: ast.ClassDef, at: Context, trail: Trail
    ) -> None:
        """What the methods of a class, and of its bases, put into an attribute."""
        is_module = self.is_module_class(file, owner)
        for level, (home, class_) in enumerate(self.lineage(file, owner)):
            found = stores(class_, name)
            here = [
                s
                for s in found
                if s.method is at.function and getattr(s.node, "lineno", 0) < getattr(node, "lineno", 0)
            ]
            if here and dominates(
                home, here[-1].node if isinstance(here[-1].node, ast.stmt) else home.statement_of(here[-1].node), node
            ):
                found = here[-1:]
            for store in found:
                self._stored(store, name, home, is_module, at, trail.fainter(0.97**level))
            method = next((n for n in class_.body if getattr(n, "name", "") == name), None)
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):  # a property
                for value in returned(method):
                    self.value(
                        value,
                        Context(home, method),
                        trail.fainter(0.9).via(step(home, value, f"`{name}` returns this")),
                    )
                return
            if found:
                return

    def _stored(self, store: Store, name: str, file: File, is_module: bool, at: Context, trail: Trail) -> None:
        if store.registered or _makes_parameter(store.value):
            return  # it moves with its module
        inside = Context(
            file,
            store.method,
            at.level if store.method is at.function else -1,
            at.call if store.method is at.function else None,
        )
        plain = is_module and store.method.name == "__init__"
        text = (
            f"`self.{name}` is a plain attribute: `.to()` of the module leaves it where it is"
            if plain
            else f"`self.{name}` is set here"
        )
        place = step(file, store.node, text)
        before = self.noted
        self.value(store.value, inside, trail.via(place), store.part)
        if (
            self.noted == before
            and isinstance(store.value, (ast.Call, ast.Subscript, ast.BinOp))
            and not self.is_module(store.value, inside)
        ):
            self.note(file, store.node, text, trail.fainter(0.4))

    def parameter(self, node: ast.Name, function: Plain, at: Context, trail: Trail) -> None:
        """Follow an argument to the call that gave it: the one on the way, that of the outer frame, or any in the project."""
        name = node.id
        if at.call is not None:
            caller, call = at.call
            self._given(call, function, name, caller, trail.fainter(0.97))
            return
        if at.level > 0:
            caller = self.context(at.level - 1)
            calls = calls_of(self.frames[at.level - 1][1], function.name)
            before = self.noted
            for call in calls:
                self._given(call, function, name, caller, trail.fainter(0.97 if len(calls) == 1 else 0.8))
            if self.noted > before or any(True for call in calls for _ in arguments_for(call, function, name)):
                return
        default = default_of(function.args, name)
        if default is not None and not isinstance(default, ast.Constant):
            self.value(default, Context(at.file, None), trail.fainter(0.6))
        called = function.name
        owner = at.file.class_of(function)
        if called == "__init__" and owner is not None:
            called = owner.name
        before = self.noted
        if trail.weight >= _WORTH_CALLERS:
            sites = self.calls_by_name(at.file, called)
            if owner is not None and called in ("forward", "__call__"):
                sites = self.calls_of_instances(at.file, owner)
            for file, call in islice(sites, CALLERS):
                self._given(call, function, name, Context(file, file.function_of(call)), trail.fainter(0.7))
        if self.noted == before and not isinstance(default, ast.Constant):
            self.unknown(node, at, trail.fainter(0.8))

    def _given(self, call: ast.Call, function: Plain, name: str, caller: Context, trail: Trail) -> None:
        for argument in arguments_for(call, function, name):
            self.value(argument, caller, trail.via(given(caller.file, call, name)))


def _statements_on(node: ast.Name, scope: ast.AST) -> Iterator[tuple[ast.Expr, ast.Call, ast.Attribute]]:
    """The statements of a scope before a place that call a method of a name for its effect alone."""
    for each in own_nodes(scope):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and each.lineno < node.lineno:
            func = each.value.func
            if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == node.id:
                yield each, each.value, func


def _is_conditional_move(binding: Binding, file: File) -> bool:
    """Whether a name is moved if there is a card, which there was: `if use_cuda: x = x.cuda()`."""
    made = binding.value
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
        if made.func.attr in OFF_HOST:
            test = file.parents.get(binding.node)
            return (
                isinstance(test, ast.If)
                and re.search(r"cuda|gpu|device", ast.unparse(test.test), re.IGNORECASE) is not None
            )
        made = made.func.value
    return False


def _encloses(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether a loop, or a block with a context, holds a node, by its rows."""
    if not isinstance(outer, (ast.For, ast.AsyncFor, ast.comprehension, ast.With)):
        return False
    first = outer.iter.lineno if isinstance(outer, ast.comprehension) else outer.lineno
    last = first + _LONG if isinstance(outer, ast.comprehension) else outer.end_lineno or first
    return first - _LONG <= getattr(inner, "lineno", 0) <= last


def _makes_parameter(node: ast.expr) -> bool:
    """Whether an expression is a parameter as it is registered: not one that is moved or changed at once."""
    return isinstance(node, ast.Call) and last_name(node.func) in ("Parameter", "UninitializedParameter", "Buffer")
