"""Modules that a function takes to the CPU to save them, while the loop that calls it runs them again in its next turn.

    model.to(device)

    def save(path):
        torch.save(model.cpu().state_dict(), path)      # a module moves in place

    for epoch in range(epochs):
        loss = criterion(model(x.to(device)), y)        # from the second turn on the model is on the CPU
        save(f"{epoch}.pt")

The same where a method takes a part of its object there, and another method of the class has the loop. What one function does
by itself, or with a module that it is given, the interpreter follows (`idioms/saved_in_loops.py`). Nothing is said where the
function or the loop may bring the module back, nor of a call in one turn alone.

`Module.cpu()` moves the module itself and returns it [torch/nn/modules/module.py, `Module._apply`].
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.events import Meet, Move
from devlint.facts.idioms.placed import goes_back
from devlint.facts.idioms.saved_in_loops import is_one_turn
from devlint.facts.surveys.outline import Outline, bound_by, dotted, parameters
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import chain
from devlint.facts.values import ACCELERATORS, CPU, Value, describe, may_be_accelerator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOVES = frozenset({"to", "to_empty", *ACCELERATORS})
#: Methods of modules that compute nothing.
_STILL = frozenset(
    {"train", "eval", "state_dict", "load_state_dict", "parameters", "named_parameters", "zero_grad", "cpu"}
)
_LEAVES = (ast.Break, ast.Return, ast.Raise)


def moved_to_save(o: Outline) -> Iterator[Meet]:
    """The calls `model.cpu().state_dict()` in functions that a loop calls, which goes on with the model."""
    if o.test:
        return
    moved = {id(event.node): event for event in o.flow.events.values() if isinstance(event, Move)}
    for read in o.attributes.get("state_dict", ()):
        call = read.value
        if not isinstance(call, ast.Call) or not goes_back(call) or not isinstance(call.func, ast.Attribute):
            continue
        path, saver = dotted(call.func.value), o.function(call)
        if path is None or not isinstance(saver, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if not is_plain(path) or is_own(saver, path) or is_brought_back(saver, path):
            continue
        if not any(is_there(move.target) for move in moves_of(o, path, moved)):
            continue
        for site, loop in loops(o, saver, path):
            given, move = next(runs(o, loop, site, path, moved), (None, None))
            if given is not None and move is not None:
                yield from event(o, call, given, move)
                break


def event(o: Outline, call: ast.Call, given: ast.expr, move: Move) -> Iterator[Meet]:
    """The meeting of the module that a call takes to the CPU with what it is given in the next turn."""
    assert isinstance(call.func, ast.Attribute) and move.target is not None
    level = o.flow.conflict(CPU, move.target.device)
    if level is None:
        return
    because = (
        o.flow.origin(call, f"moved to {describe(CPU)} here, in place"),
        o.flow.origin(move.node, f"moved to {describe(move.target.device)} here, in the loop"),
    )
    off = o.flow.operand(call.func.value, Value("module", CPU, because=because[:1], moved=True))
    other = o.flow.operand(given, Value("tensor", move.target.device, None, because=because[1:], moved=True))
    yield Meet(*o.head(call, *because), "module", "module", off, other, level)


def is_plain(path: str) -> bool:
    """Whether a path is a name, or an attribute of the object itself."""
    return "." not in path or (path.startswith("self.") and path.count(".") == 1)


def is_own(function: Function, path: str) -> bool:
    """Whether a name is one that a function binds, or is given."""
    bound = (name for node in walk(function) for name, _ in bound_by(node))
    return path in parameters(function) or path in bound


def is_there(target: Value | None) -> bool:
    """Whether a move is one to where an accelerator may be."""
    return target is not None and may_be_accelerator(target.device)


def moves_of(o: Outline, path: str, moved: dict[int, Move]) -> Iterator[Move]:
    """The moves of what a path stands for: `model.to(device)`, `model = Net().to(device)`."""
    yield from o.moves.get(path, ())
    for node in o.parent:
        if isinstance(node, ast.Assign) and id(node.value) in moved and any(dotted(t) == path for t in node.targets):
            yield moved[id(node.value)]


def is_brought_back(around: ast.AST, path: str, after: int = 0, before: int = 0) -> bool:
    """Whether a tree moves what a path stands for, binds it, or hands it on with a device, but for the rows between two."""
    for node in walk(around):
        if after < getattr(node, "lineno", 0) < before:
            continue
        if any(name == path for name, _ in bound_by(node)):
            return True
        if isinstance(node, ast.Call):
            move = node.func if isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES else None
            if move is not None and path in map(dotted, chain(move.value)) and not goes_back(node):
                return True
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if path in map(dotted, given) and any("device" in ast.unparse(each).lower() for each in given):
                return True
    return False


def loops(o: Outline, saver: Function, path: str) -> Iterator[tuple[ast.Call, ast.For]]:
    """The loops that call a function in several turns, each with the call."""
    calls = o.attributes.get(saver.name, ()) if path.startswith("self.") else ()
    sites: Iterator[ast.Call] = (
        call
        for call in (*o.called.get(saver.name, ()), *map(o.parent.get, calls))
        if isinstance(call, ast.Call) and calls_saver(o, call, saver, path)
    )
    for site in sites:
        inner: ast.AST = site
        for around in o.above(site):
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                break
            if isinstance(around, ast.If) and inner is not around.test and is_last(around.test):
                break
            if isinstance(inner, ast.stmt) and leaves(o, inner):
                break
            if isinstance(around, ast.For) and inner in around.body:
                yield site, around
            inner = around


def calls_saver(o: Outline, call: ast.Call, saver: Function, path: str) -> bool:
    """Whether a call is one of a function, where the path stands for the same as in the function."""
    around = o.function(call)
    if path.startswith("self."):
        own = isinstance(call.func, ast.Attribute) and dotted(call.func) == f"self.{saver.name}"
        return own and o.nearest(call, ast.ClassDef) is o.nearest(saver, ast.ClassDef)
    if not isinstance(call.func, ast.Name) or not isinstance(
        around, (ast.FunctionDef, ast.AsyncFunctionDef, type(None))
    ):
        return False
    defined = [o.function(function) for function in o.functions if function.name == saver.name]
    home = o.function(saver)
    if isinstance(o.parent.get(saver), ast.ClassDef) or defined.count(home) != 1:
        return False
    if home is around:
        return True
    return home is None and around is not None and around not in defined and not is_own(around, path)


def is_last(test: ast.expr) -> bool:
    """Whether a condition holds in one turn alone, as far as it shows: `epoch == last`, but not `epoch % 5 == 0 or last`."""
    if isinstance(test, ast.BoolOp):
        return (all if isinstance(test.op, ast.Or) else any)(map(is_last, test.values))
    return is_one_turn(test)


def leaves(o: Outline, statement: ast.stmt) -> bool:
    """Whether what ends the loop stands after a statement, in its own block."""
    block = o.block(statement)
    return any(isinstance(each, _LEAVES) for each in block[block.index(statement) :])


def runs(
    o: Outline, loop: ast.For, site: ast.Call, path: str, moved: dict[int, Move]
) -> Iterator[tuple[ast.expr, Move]]:
    """What a loop moves for the module and gives it, each with its move: `model(x.to(device))`, `model.update(batch)`.

    What brings the module back between such a call and the one that saves it, `site`, comes too late in the next turn.
    """
    for call in (n for n in walk(loop) if isinstance(n, ast.Call)):
        run = call.func
        if isinstance(run, ast.Attribute) and dotted(run) != path and run.attr not in _STILL:
            run = run.value
        if dotted(run) != path or is_brought_back(loop, path, call.end_lineno or call.lineno, site.lineno):
            continue
        for given in call.args:
            sources = o.values(o.scope(call)).get(given.id, ()) if isinstance(given, ast.Name) else (given,)
            for part in (n for source in sources if source is not None and holds(loop, source) for n in walk(source)):
                move = moved.get(id(part))
                if move is not None and is_there(move.target):
                    yield given, move
