"""Statements: how each changes the state of a run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from devlint.inference.program.definitions import Class, Function
from devlint.inference.program.handlers import NAMELESS, handled
from devlint.inference.summary import binding, switches, tests, walks
from devlint.inference.summary.dispatch import evaluate, silent
from devlint.inference.summary.expressions import SYMBOLS, combine
from devlint.inference.summary.frame import Frame, Loop, State, merge_states
from devlint.inference.summary.items import item_of
from devlint.inference.terms.conditions import ALWAYS, ROUND, Condition, compatible
from devlint.inference.terms.places import nowhere
from devlint.inference.terms.values import NONE, NOTHING, Value


def run_block(frame: Frame, body: list[ast.stmt]) -> None:
    for statement in body:
        if frame.state.dead:
            return
        run = _RUN.get(type(statement))
        if run is not None:
            frame.statement = statement
            run(frame, statement)


def _assign(frame: Frame, node: ast.Assign) -> None:
    value = evaluate(frame, node.value)
    for target in node.targets:
        binding.bind(frame, target, value, node.value)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        binding.bind(frame, node.target, evaluate(frame, node.value), node.value)


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    old, new = evaluate(frame, node.target), evaluate(frame, node.value)
    if old.is_tensor and old.proved:
        if new.may_be_tensor:
            frame.together("inplace", "scalar", _operator(node.op), [(node.target, old), (node.value, new)], node)
        return
    if old.kind == "unknown" and new.is_tensor and old.places:
        combine(frame, node, node.op, (node.target, old), (node.value, new))
        binding.bind(frame, node.target, old._replace(proved=False), node.value)  # it stays where it was
        return
    binding.bind(frame, node.target, combine(frame, node, node.op, (node.target, old), (node.value, new)), node.value)


def _operator(op: ast.operator) -> str:
    return SYMBOLS.get(type(op), "?") + "="


def _expression(frame: Frame, node: ast.Expr) -> None:
    evaluate(frame, node.value)


def _return(frame: Frame, node: ast.Return) -> None:
    value = evaluate(frame, node.value) if node.value is not None else NONE
    frame.returns.append((value, frame.condition, frame.state.copy()))
    frame.state.dead = True


def _raise(frame: Frame, node: ast.Raise) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(frame, child)
    frame.state.dead = True


def _break(frame: Frame, node: ast.Break) -> None:
    if frame.loops:
        frame.loops[-1].breaks.append(frame.state.copy())
    frame.state.dead = True


def _continue(frame: Frame, node: ast.Continue) -> None:
    if frame.loops:
        frame.loops[-1].continues.append(frame.state.copy())
    frame.state.dead = True


def _if(frame: Frame, node: ast.If) -> None:
    evaluate(frame, node.test)
    yes, no = tests.outcomes(frame, node.test)
    switches.note(frame, node, yes)
    outer, before = frame.condition, frame.state.copy()
    frame.state.dead = not compatible(outer, yes)
    tests.enter(frame, node.test, True, yes)
    run_block(frame, node.body)
    first = frame.state
    first_condition = frame.condition
    frame.state = before
    frame.condition = outer
    frame.state.dead = not compatible(outer, no)
    tests.enter(frame, node.test, False, no)
    run_block(frame, node.orelse)
    second = frame.state
    # What comes next runs under the condition of the only path that goes on.
    if first.dead and not second.dead:
        pass
    elif second.dead and not first.dead:
        frame.condition = first_condition
    else:
        frame.condition = outer
    frame.state = merge_states(first, second, yes, no)


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    through = evaluate(frame, node.iter)
    item = item_of(frame, through, node.iter)

    def start() -> None:
        binding.bind(frame, node.target, item, node.iter)

    frame.statement = node
    walk = walks.walk_of(node.iter, node.target)
    if walk is not None:
        walk.under.add(frame.condition)
        frame.walks.append(walk)
    _loop(frame, node.body, start, runs=True)
    if walk is not None:
        frame.walks.remove(walk)
        walks.close(frame, walk)
    run_block(frame, node.orelse)


def _while(frame: Frame, node: ast.While) -> None:
    evaluate(frame, node.test)
    _loop(frame, node.body, lambda: None, runs=isinstance(node.test, ast.Constant))
    run_block(frame, node.orelse)


def _loop(frame: Frame, body: list[ast.stmt], start: Callable[[], None], runs: bool) -> None:
    """A loop: its body runs twice, the second time on what the first one left. `runs`: it is taken to run at least once."""
    before, outer = frame.state.copy(), frame.condition
    after: State | None = None
    left: list[State] = []
    for round in (0, 1):
        loop = Loop()
        frame.loops.append(loop)
        frame.versions[ROUND] = frame.version(ROUND) + 1
        start()
        run_block(frame, body)
        frame.loops.pop()
        frame.condition = outer
        end = frame.state
        for each in loop.continues:
            end = merge_states(end, each)
        left = loop.breaks
        end.heap.leave_round()
        after = end
        if round == 0:
            again, first = _rounds(frame, end, before)
            frame.state = merge_states(end.copy() if not end.dead else end, before.copy(), again, first)
    assert after is not None
    if not runs:
        after = merge_states(after, before)
    for each in left:
        after = merge_states(after, each)
    frame.state = after


def _rounds(frame: Frame, end: State, before: State) -> tuple[Condition, Condition]:
    """Conditions that tell the first round of a loop from the others, where a flag does so."""
    for name, value in before.names.items():
        later = end.names.get(name)
        if later is None or later is value or end.dead:
            continue
        is_flag = value.kind == later.kind == "bool" and value.constant is not None and later.constant is not None
        if (is_flag and value.constant != later.constant) or (value.kind == "none" and later.kind != "none"):
            place = (frame.statement.lineno, frame.statement.col_offset) if frame.statement is not None else (0, 0)
            return frozenset({(("again", place), True)}), frozenset({(("again", place), False)})
    return ALWAYS, ALWAYS


#: Context managers in which an error is wanted [pytest documentation, `raises`; unittest, `assertRaises`].
_WANTS_ERRORS = frozenset({"pytest.raises", "assertRaises", "assertRaisesRegex"})
#: Context managers of libraries in which modules are made elsewhere [deepspeed, accelerate and transformers documentation].
_PLACES_MODULES = frozenset(
    {
        "deepspeed.zero.Init",
        "accelerate.init_empty_weights",
        "accelerate.init_on_device",
        "transformers.modeling_utils.no_init_weights",
    }
)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    default = frame.default
    names = [_called(frame, item.context_expr) for item in node.items]
    if any(name in _WANTS_ERRORS or name.rpartition(".")[2] in _WANTS_ERRORS for name in names):
        with silent(frame):
            run_block(frame, node.body)
        return
    left: list[Callable[[], Value]] = []
    for item in node.items:
        value = evaluate(frame, item.context_expr)
        if value.kind == "device":
            frame.default = value.places
        elif _called(frame, item.context_expr) in _PLACES_MODULES:
            frame.default = nowhere()
        if value.kind == "context" and value.parts:
            value = value.parts[0]
        entered = _enter(frame, item.context_expr, value, left)
        if item.optional_vars is not None:
            binding.bind(frame, item.optional_vars, entered, item.context_expr)
    start = len(frame.constraints)
    run_block(frame, node.body)
    if "contextlib.suppress" in names:
        _catch(frame, start, len(frame.constraints))
    frame.default = default
    if not frame.state.dead:
        for leave in reversed(left):
            leave()
        for item in node.items if frame.analyser.watch is not None else ():
            frame.analyser.watch.left(frame, item.context_expr)  # type: ignore[union-attr]


def _enter(frame: Frame, node: ast.expr, value: Value, left: list[Callable[[], Value]]) -> Value:
    """Enter a context of a class of the project: what its `__enter__` gives. `left`: gets the call of its `__exit__`.

    Source: Python's language reference, "The with statement".
    """
    class_ = frame.class_of(value) if value.objects else None
    if not isinstance(class_, Class):
        return value
    enter, leave = class_.method("__enter__"), class_.method("__exit__")
    if leave is not None:
        left.append(lambda: frame.analyser.call(frame, leave, value, [NONE, NONE, NONE], node))
    return frame.analyser.call(frame, enter, value, [], node) if enter is not None else value


def _called(frame: Frame, node: ast.expr) -> str:
    """The qualified name of what an expression calls."""
    if not isinstance(node, ast.Call):
        return ""
    return frame.file.qualified(node.func) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")


def _try(frame: Frame, node: ast.Try) -> None:
    before, outer, start = frame.state.copy(), frame.condition, len(frame.constraints)
    run_block(frame, node.body)
    end = len(frame.constraints)
    run_block(frame, node.orelse)
    after, condition = frame.state, frame.condition
    failed = (("raised", node.lineno, node.col_offset), True)
    went_on = frozenset({(failed[0], False)})
    half_way = before if after.dead else merge_states(before, after.copy())
    half_way.dead = False
    for handler in node.handlers:
        frame.state = half_way.copy()
        frame.condition = outer | {failed}
        if handler.name:
            frame.bind(handler.name, NOTHING)
        run_block(frame, handler.body)
        if not frame.state.dead:
            condition = outer
        if _takes_failures(handler.type) and not _ends(frame, handler.body):
            _catch(frame, start, end)
        after = merge_states(after, frame.state, went_on, frozenset({failed}))
    frame.state, frame.condition = after, condition if not after.dead else outer
    dead, frame.state.dead = frame.state.dead, False
    run_block(frame, node.finalbody)
    frame.state.dead = frame.state.dead or dead


#: The errors of an operation on two devices, and of a read by the host, with their bases [Python's library reference,
#: "Exception hierarchy"; torch raises RuntimeError, and TypeError in `Tensor.numpy`].
_FAILURES = frozenset({"BaseException", "Exception", "RuntimeError", "TypeError", NAMELESS})


def _takes_failures(node: ast.expr | None) -> bool:
    """Whether a handler takes the errors of an operation on two devices."""
    return not _FAILURES.isdisjoint(handled(node))


def _ends(frame: Frame, body: list[ast.stmt]) -> bool:
    """Whether a handler that was just run ends the program or the function."""
    return frame.state.dead and not any(isinstance(each, (ast.Continue, ast.Break)) for each in body)


def _catch(frame: Frame, start: int, end: int) -> None:
    """The program goes on after a failure of these operations."""
    frame.stops = []
    frame.constraints[start:end] = [each._replace(caught=True) for each in frame.constraints[start:end]]


def _match(frame: Frame, node: ast.Match) -> None:
    subject = evaluate(frame, node.subject)
    before, after = frame.state.copy(), None
    outer = frame.condition
    for case in node.cases:
        frame.state = before.copy()
        for inner in ast.walk(case.pattern):
            name = getattr(inner, "name", None) or getattr(inner, "rest", None)
            if isinstance(name, str):
                frame.bind(name, subject if isinstance(inner, ast.MatchAs) and inner.pattern is None else NOTHING)
        run_block(frame, case.body)
        frame.condition = outer
        after = frame.state if after is None else merge_states(after, frame.state)
    frame.state = merge_states(after, before) if after is not None else before


def _define(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if frame.function is None:
        function = frame.file.functions.get(node.name)
        if function is None or function.node is not node:
            function = Function(frame.file, node)
            frame.analyser.nest(node, function)
    else:
        function = Function(frame.file, node, None, frame)
        frame.analyser.nest(node, function)
    frame.bind(node.name, Value("function", ref=(function, None)))


def _class(frame: Frame, node: ast.ClassDef) -> None:
    known = frame.file.classes.get(node.name)
    if known is None or known.node is not node:
        known = Class(frame.file, node, frame if frame.function is not None else None)
        frame.analyser.nest(node, known)
    frame.bind(node.name, Value("class", ref=known))


def _assert(frame: Frame, node: ast.Assert) -> None:
    evaluate(frame, node.test)
    yes, _ = tests.outcomes(frame, node.test)
    tests.enter(frame, node.test, True, yes)


def _shared(frame: Frame, node: ast.Global | ast.Nonlocal) -> None:
    frame.shared_names.update(node.names)


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.state.names.pop(target.id, None)


def _import(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    for alias in node.names:
        frame.state.names.pop(alias.asname or alias.name.partition(".")[0], None)


_RUN: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _class,
    ast.Assert: _assert,
    ast.Global: _shared,
    ast.Nonlocal: _shared,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import,
}
if hasattr(ast, "TryStar"):
    _RUN[ast.TryStar] = _try
