"""Modules that a function takes to the CPU to save them, while the loop that calls it runs them again in its next turn.

    model.to(device)

    def save(path):
        torch.save(model.cpu().state_dict(), path)      # a module moves in place

    for epoch in range(epochs):
        loss = criterion(model(x.to(device)), y)        # from the second turn on the model is on the CPU
        save(f"{epoch}.pt")

The same where a method takes a part of its object there, and another method of the class has the loop. What one function does
by itself, or with a module that it is given, the interpreter follows (`idioms/saved_in_loops.py`).

Said only where all of the loop, and of the functions that it calls, can be read: they do nothing with the module but run it and
set its mode, and call nothing that might move it; the loop is not left or cut short, and it saves in every turn, or in each
that `epoch % n == 0` picks.

`Module.cpu()` moves the module itself and returns it [torch/nn/modules/module.py, `Module._apply`].
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import Meet, Move
from devlint.facts.idioms.placed import goes_back
from devlint.facts.surveys.outline import Outline, bound_by, dotted, parameters, root_of
from devlint.facts.text.method_names import OFF_HOST_MODULE
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import is_loss_name
from devlint.facts.values import CPU, Value, describe, may_be_accelerator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOVES = OFF_HOST_MODULE | {"cpu"}
#: Methods of modules that neither compute nor move anything.
_STILL = frozenset({"train", "eval", "zero_grad"})
#: Methods of tensors, containers, texts and logs, which know nothing of the module.
_OTHERS = frozenset(
    {
        "backward", "item", "mean", "sum", "abs", "pow", "square", "detach", "view", "reshape",
        "squeeze", "unsqueeze", "flatten", "append", "format", "items", "join", "argmax", "eq", "size", "clone",
        "add_scalar", "add_scalars", "info", "debug", "warning",
    }
)  # fmt: skip
_OPTIMIZER = re.compile(r"opt|sched|scaler", re.IGNORECASE)
_BUILTINS = frozenset(
    {"print", "len", "range", "enumerate", "zip", "str", "int", "float", "round", "max", "min", "sum", "tqdm", "iter"}
)
_LIBRARIES = frozenset({"torch", "numpy", "math", "time", "os", "random", "json", "tqdm", "logging"})
#: What ends a loop, a turn or the program, or may.
_LEAVES = (
    ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.While, ast.Yield, ast.YieldFrom, ast.Await, ast.Assert,
    ast.Match, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Import,
    ast.ImportFrom, ast.Delete, ast.NamedExpr,
)  # fmt: skip
_ENDS = frozenset({"exit", "_exit", "abort", "kill", "quit"})


class Saved:
    """The savers of a file and the loops that call them; what is asked of a loop or a function is answered once."""

    def __init__(self, o: Outline) -> None:
        self.o = o
        self.moved = {id(event.node): event for event in o.flow.events.values() if isinstance(event, Move)}
        self.named: dict[str, list[Function]] = {}
        for function in o.functions:
            self.named.setdefault(function.name, []).append(function)
        self.there = {path for path, moves in o.moves.items() if any(is_there(move.target) for move in moves)}
        for node in o.parent:
            if isinstance(node, ast.Assign) and id(node.value) in self.moved:
                if is_there(self.moved[id(node.value)].target):
                    self.there.update(filter(None, map(dotted, node.targets)))
        self._own: dict[Function, frozenset[str]] = {}
        self._quiet: dict[tuple[ast.AST, str], bool] = {}
        self._runs: dict[tuple[ast.AST, str], tuple[ast.expr, Move] | None] = {}

    def function(self, call: ast.Call, path: str) -> Function | None:
        """The function of the file that a call is one of, if nothing else of the file has its name; a method for `self.net`."""
        o, of_self = self.o, path.startswith("self.")
        name = dotted(call.func) or ""
        defined = self.named.get(name.removeprefix("self.") if of_self else name, [])
        if len(defined) != 1 or name.startswith("self.") is not of_self or defined[0].decorator_list:
            return None
        function = defined[0]
        class_ = o.parent.get(function)
        if of_self:
            own = isinstance(class_, ast.ClassDef) and o.nearest(call, ast.ClassDef) is class_
            return function if own else None
        return None if isinstance(class_, ast.ClassDef) else function

    def is_same(self, site: ast.AST, saver: Function, path: str) -> bool:
        """Whether a path stands for the same where a function is called as in the function."""
        home, around = self.o.function(saver), self.o.function(site)
        if path.startswith("self.") or home is around:
            return True
        return home is None and isinstance(around, Function) and not self.is_own(around, path)

    def is_own(self, function: Function, path: str) -> bool:
        """Whether a name is one that a function binds, or is given."""
        if function not in self._own:
            bound = {name for node in walk(function) for name, _ in bound_by(node)}
            self._own[function] = frozenset(bound | parameters(function))
        return path in self._own[function]

    def leaves_alone(self, tree: ast.AST, path: str, deep: bool) -> bool:
        """Whether a loop or a function does nothing to what a path stands for but run it, and take it to the CPU to save it.

        `deep`: what it calls may call further functions of the file.
        """
        key = (tree, path)
        if key not in self._quiet:
            self._quiet[key] = False  # what calls itself
            self._quiet[key] = all(self.is_still(node, path, deep) for node in walk(tree) if node is not tree)
        return self._quiet[key]

    def is_still(self, node: ast.AST, path: str, deep: bool) -> bool:
        o = self.o
        if isinstance(node, _LEAVES) or any(name == path for name, _ in bound_by(node)):
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) == path:
            return self.is_run(node)
        if isinstance(node, ast.Name) and node.id == "self":
            return isinstance(o.parent.get(node), ast.Attribute)
        return not isinstance(node, ast.Call) or self.is_harmless(node, path, deep)

    def is_run(self, node: ast.expr) -> bool:
        """Whether the module is called, put into a mode, taken to the CPU to be saved, or has its gradients clipped."""
        outer = self.o.parent.get(node)
        if isinstance(outer, ast.Call):
            return outer.func is node
        call = self.o.parent.get(outer) if isinstance(outer, ast.Attribute) else None
        if not isinstance(call, ast.Call) or call.func is not outer or not isinstance(outer, ast.Attribute):
            return False
        return outer.attr in _STILL or saves(self.o, call) or self.is_clipped(call, outer.attr)

    def is_clipped(self, call: ast.Call, name: str) -> bool:
        """Whether a call is that of `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`."""
        clip = self.o.parent.get(call)
        if name != "parameters" or not isinstance(clip, ast.Call):
            return False
        return (self.o.qualname(clip.func) or "").startswith("torch.nn.utils.clip_grad_")

    def is_harmless(self, call: ast.Call, path: str, deep: bool) -> bool:
        """Whether a call cannot move the module: that of the module itself, of a loss, of a tensor, of a library."""
        function, o = call.func, self.o
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if dotted(function) == path:
            return True
        if isinstance(function, ast.Attribute) and dotted(function.value) == path:
            return True  # see `is_run`
        if isinstance(function, ast.Attribute) and name == "state_dict":
            return saves(o, function.value)
        if name in _MOVES:
            used = not isinstance(o.parent.get(call), ast.Expr)  # else a module moves in place
            return used and isinstance(function, ast.Attribute) and self.is_input(function.value)
        called = self.function(call, path)
        if called is not None:
            return deep and self.leaves_alone(called, path, deep=False)
        qualname = o.qualname(function)
        of_file = name in self.named and (qualname is None or isinstance(function, ast.Name))  # not `torch.save`
        if of_file or name in _ENDS:
            return False
        if qualname is not None:
            return qualname.partition(".")[0] in _LIBRARIES
        if dotted(function) == f"self.{name}":
            class_ = o.nearest(call, ast.ClassDef)
            return is_loss_name(name) and class_ is not None and f"self.{name}" in o.values(class_)
        if isinstance(function, ast.Attribute) and name in ("step", "zero_grad"):
            return _OPTIMIZER.search(last_name(function.value)) is not None
        return is_loss_name(name) or name in (_OTHERS if isinstance(function, ast.Attribute) else _BUILTINS)

    def is_input(self, node: ast.expr) -> bool:
        """Whether an expression is what a loop goes through, or a part of that: no name of `self`."""
        root = root_of(node)
        if not isinstance(root, ast.Name) or root.id == "self" or any(isinstance(n, ast.Call) for n in walk(node)):
            return False
        values = self.o.values(self.o.scope(node)).get(root.id, ())
        return len(values) > 0 and all(value is None or id(value) in self.moved for value in values)

    def runs(self, loop: ast.For, path: str) -> tuple[ast.expr, Move] | None:
        """What a loop moves and gives the module, in every turn, with the move: `model(x.to(device))`."""
        key = (loop, path)
        if key not in self._runs:
            found = (self.moved_input(node) for node in unconditional(self.o, loop.body, path))
            self._runs[key] = next((each for each in found if each is not None), None)
        return self._runs[key]

    def moved_input(self, call: ast.Call) -> tuple[ast.expr, Move] | None:
        given = call.args[0] if call.args else None
        source = self.bound_last(given, call) if isinstance(given, ast.Name) else given
        move = self.moved.get(id(source)) if source is not None else None
        return (given, move) if given is not None and move is not None and is_there(move.target) else None

    def bound_last(self, name: ast.Name, call: ast.Call) -> ast.expr | None:
        """What a name got last before a call, in the block of the call, or the one thing that it ever gets."""
        statement = self.o.statement(call)
        block = self.o.block(statement) if statement is not None else []
        for before in reversed(block[: block.index(statement)] if statement in block else []):
            bound = [(node, value) for node in walk(before) for path, value in bound_by(node) if path == name.id]
            if bound:
                return bound[0][1] if len(bound) == 1 and bound[0][0] is before else None
        values = self.o.values(self.o.scope(call)).get(name.id, ())
        return values[0] if len(values) == 1 else None


def moved_to_save(o: Outline) -> Iterator[Meet]:
    """The calls `model.cpu().state_dict()` in functions that a loop calls, which goes on with the model."""
    if o.test:
        return
    found: Saved | None = None
    for read in o.attributes.get("state_dict", ()):
        call = read.value
        if not isinstance(call, ast.Call) or not saves(o, call) or not isinstance(call.func, ast.Attribute):
            continue
        path, saver = dotted(call.func.value), o.function(call)
        if path is None or not isinstance(saver, Function) or not is_plain(path):
            continue
        found = Saved(o) if found is None else found
        if (
            path not in found.there
            or found.is_own(saver, path)
            or not stands_alone(o, call, saver)
            or not found.leaves_alone(saver, path, False)
        ):
            continue
        calls = o.attributes.get(saver.name, ()) if path.startswith("self.") else ()
        for site in (*o.called.get(saver.name, ()), *map(o.parent.get, calls)):
            if not isinstance(site, ast.Call) or found.function(site, path) is not saver:
                continue
            loop = loop_of(o, site)
            if loop is None or not found.is_same(site, saver, path) or not found.leaves_alone(loop, path, deep=True):
                continue
            given = found.runs(loop, path)
            if given is not None:
                yield from event(o, call, *given)
                break


def event(o: Outline, call: ast.Call, given: ast.expr, move: Move) -> Iterator[Meet]:
    """The meeting of the module that a call takes to the CPU with what it is given in the next turn."""
    assert isinstance(call.func, ast.Attribute) and move.target is not None
    level = o.flow.conflict(CPU, move.target.device)
    if level is None:
        return
    because = (
        o.flow.origin(call, f"moved to {describe(CPU)} in place here"),
        o.flow.origin(move.node, f"moved to {describe(move.target.device)} in the loop here"),
    )
    off = o.flow.operand(call.func.value, Value("module", CPU, because=because[:1], moved=True))
    other = o.flow.operand(given, Value("tensor", move.target.device, None, because=because[1:], moved=True))
    yield Meet(*o.head(call, *because), "module", "module", off, other, level)


def saves(o: Outline, call: ast.expr) -> bool:
    """Whether a call is that of `model.cpu().state_dict()` which moves the module."""
    if not isinstance(call, ast.Call) or not goes_back(call):
        return False
    read = o.parent.get(call)
    return isinstance(read, ast.Attribute) and read.attr == "state_dict"


def is_plain(path: str) -> bool:
    """Whether a path is a name, or an attribute of the object itself."""
    return "." not in path or (path.startswith("self.") and path.count(".") == 1)


def is_there(target: Value | None) -> bool:
    """Whether a move is one to where an accelerator may be."""
    return target is not None and may_be_accelerator(target.device)


def stands_alone(o: Outline, call: ast.Call, saver: Function) -> bool:
    """Whether a function makes a call whenever it runs."""
    statement = o.statement(call)
    outer = o.parent.get(statement) if statement is not None else None
    if isinstance(outer, ast.With):
        outer = o.parent.get(outer)
    return outer is saver and isinstance(statement, (ast.Expr, ast.Assign)) and not o.conditional(call, statement)


def loop_of(o: Outline, site: ast.Call) -> ast.For | None:
    """The loop whose turns make a call: each of them, or those that `epoch % n == 0` picks; not the last turn alone."""
    statement = o.parent.get(site)
    outer = o.parent.get(statement) if isinstance(statement, ast.Expr) else None
    test: ast.expr | None = None
    if isinstance(outer, ast.If) and statement in outer.body and is_every(outer.test):
        test, outer, statement = outer.test, o.parent.get(outer), outer
    if not isinstance(outer, ast.For) or statement not in outer.body:
        return None
    turns = literal_range(outer.iter)
    return outer if turns is None or picks_before_last(turns, outer.target, test) else None


def literal_range(node: ast.expr) -> range | None:
    """The numbers of `range(10)`, where all that it gets is written out."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "range" or not 1 <= len(node.args) <= 3:
        return None
    given = [n.value for n in node.args if isinstance(n, ast.Constant) and isinstance(n.value, int)]
    return range(*given) if len(given) == len(node.args) and given[2:] != [0] else None


def picks_before_last(turns: range, target: ast.expr, test: ast.expr | None) -> bool:
    """Whether `epoch % 5 == 0` is known to hold in a turn that is not the last one; no condition holds in each."""
    earlier = turns[:-1]
    if test is None:
        return len(earlier) > 0
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.BinOp):
        return False
    counted, every, rest = test.left.left, test.left.right, test.comparators[0]
    if not isinstance(every, ast.Constant) or not isinstance(rest, ast.Constant) or not isinstance(every.value, int):
        return False
    added = 0
    if isinstance(counted, ast.BinOp) and isinstance(counted.op, ast.Add) and isinstance(counted.right, ast.Constant):
        added, counted = counted.right.value if isinstance(counted.right.value, int) else 0, counted.left
    if dotted(counted) is None or dotted(counted) != dotted(target) or every.value == 0:
        return False
    return any((turn + added) % every.value == rest.value for turn in earlier[: abs(every.value)])


def is_every(test: ast.expr) -> bool:
    """Whether a condition picks turns at even distances: `epoch % 5 == 0`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    counted = test.left.op if isinstance(test.left, ast.BinOp) else None
    return isinstance(counted, ast.Mod) and isinstance(test.comparators[0], ast.Constant)


def unconditional(o: Outline, body: list[ast.stmt], path: str) -> Iterator[ast.Call]:
    """The calls of a module in statements that stand under no condition, in loops inside as well."""
    for statement in body:
        if isinstance(statement, (ast.For, ast.With)):
            yield from unconditional(o, statement.body, path)
        elif isinstance(statement, (ast.Expr, ast.Assign)):
            for node in walk(statement):
                if isinstance(node, ast.Call) and dotted(node.func) == path and not o.conditional(node, statement):
                    yield node
