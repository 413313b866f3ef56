"""In which order a model moves and its optimizer is made, or gets its state back.

`torch.optim` asks to move the model first. Between the CPU and CUDA the parameters stay the same objects, so that only
state that exists already is left behind: that of `load_state_dict`, and that which Adagrad makes at once
[torch/optim/optimizer.py, torch/optim/adagrad.py]. Elsewhere (XLA, meta, FSDP) the optimizer keeps the old parameters.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from devlint.facts.events import Creation, Operand, OptimizerOrder
from devlint.facts.frozen import replace
from devlint.facts.text.method_names import OFF_HOST_MODULE
from devlint.facts.text.nodes import blocks, holds, statements, walk
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import parameter_names
from devlint.facts.text.signs import is_sign
from devlint.facts.values import NONE, Value, describe, is_surely_accelerator, may_be_accelerator
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments, CallArguments
    from devlint.facts.text.scan import Scan

OPTIMIZED = "<optimizer> "  # entries of the state beside the access paths: the optimizer of a module
_MOVED = "<moved> "  # and that a module moved
#: What explains an optimizer that has state, by the method that gave it.
_STATE = {
    "load_state_dict": "the optimizer's state is loaded here",
    "step": "the optimizer's step creates its state here",
}
#: What moves a model, or its state.
_MOVES = OFF_HOST_MODULE | {"prepare"}
_STATE_AT_ONCE = frozenset({"Adagrad"})
#: What puts a model on a device by its own choice: accelerate, deepspeed, Lightning's Fabric, Ray.
_PLACING = frozenset({"prepare", "prepare_model", "initialize", "setup", "setup_module"})
_MOST = 50  # optimizers of one file that are followed from a helper
_MAY_BE_MODULES = frozenset({"module", "unknown", "tensors"})
_NAMED = r"optim(?:izer)?s?(?!_(?:config|cfg|sched|state|params))(?:_\w+)?\Z"
_OPTIMIZER = re.compile(rf"(?:\b|_){_NAMED}", re.IGNORECASE)
_MAKES_OPTIMIZER = re.compile(rf"_*(?:create|get|build|make|init|setup|construct)?_*{_NAMED}", re.IGNORECASE)
_MAKER = re.compile(rf"(?:torch\.)?optim\.[A-Z]|{_MAKES_OPTIMIZER.pattern}", re.IGNORECASE)
_MODEL = re.compile(r"(?:\b|_)(?:model|net|network)\Z", re.IGNORECASE)


def note_optimizer(
    machine: CallArguments, node: ast.Call, qualname: str, arguments: Arguments, optimizer: Value
) -> Value:
    """An optimizer is made: remember whose parameters it has, where these have not been moved yet."""
    first = arguments.get("params", 0)
    if first is not None and machine.owner is not None and machine.in_init:
        for child in ast.walk(first[0]):
            if isinstance(child, ast.Attribute) and machine.path(child) == f"self.{child.attr}":
                entry = machine.owner.unregistered.get(child.attr)
                if entry is not None:
                    entry.trained = True
    if first is None or machine.host:
        return optimizer
    for path in _modules(machine, first[0], node):
        _remember(machine, node, qualname, path, optimizer)
    return optimizer


def _remember(
    machine: CallArguments, node: ast.Call, qualname: str, path: str, optimizer: Value, *state: Origin
) -> None:
    """An optimizer has the parameters of the module at a path, unless that was moved already. `state`: that it has some."""
    env = machine.state.env
    if any(_key(_MOVED, part) in env for part in _prefixes(path)):
        return
    known = [machine.lookup(part) for part in _prefixes(path)]
    if any(v is not None and (v.moved or is_surely_accelerator(v.device)) for v in known):
        return
    span = machine.span(node)
    origin = Origin(span, f"the optimizer gets the parameters of `{path}` here")
    key = _key(OPTIMIZED, path)
    machine.optimizers.add(key)
    env[key] = Value(
        "optimizer",
        optimizer.device,
        type_name=optimizer.type_name,
        because=(origin, *state),
        made=(Creation(span, qualname, node, machine.scope()),),
        constant=path,
    )


def note_state(machine: CallArguments, node: ast.Call, optimizer: Value, method: str) -> bool:
    """`optimizer.load_state_dict(...)`, `optimizer.step()`: state is put, or made, where the parameters are now.

    Whether it is known whose parameters the optimizer has.
    """
    made = {origin.span for origin in optimizer.because}
    env = machine.state.env
    known = False
    for key in machine.optimizers & env.keys():
        entry = env[key]
        if any(origin.span in made for origin in entry.because):
            known = True
            origin = Origin(machine.span(node), _STATE[method])
            env[key] = replace(entry, because=(*entry.because[:3], origin))
    return known


def note_restored(machine: CallArguments, node: ast.Call, optimizer: ast.expr) -> None:
    """The state of what a helper made for a model is loaded: `optimizer = create_optimizer(args, model)`."""
    body = _body(machine)
    text = machine.text(optimizer)
    if body is None or machine.host or _OPTIMIZER.search(text) is None or len(machine.optimizers) >= _MOST:
        return
    bound = [
        s
        for s in statements(body)
        if isinstance(s, ast.Assign) and s.lineno < node.lineno and any(machine.text(t) == text for t in s.targets)
    ]
    maker = bound[0].value if len(bound) == 1 else None
    if not isinstance(maker, ast.Call) or _MAKES_OPTIMIZER.match(last_name(maker.func)) is None:
        return
    if any(map(is_sign, ast.walk(maker))) or _moves_something(machine, maker.func) or _is_looked_after(body, text):
        return
    state = Origin(machine.span(node), _STATE["load_state_dict"])
    for given in _given(maker):
        path = machine.path(given) if _MODEL.search(machine.text(given)) is not None else None
        paths = [path] if path is not None and path != "self" else list(_owners(machine, given))
        for each in paths:
            value = machine.lookup(each)
            if value is not None and value.kind not in _MAY_BE_MODULES:
                continue
            if not _replaced(each, body, maker, node, wrapped=True) and not _may_be_placed(body, each, node):
                _remember(machine, maker, last_name(maker.func), each, Value("optimizer"), state)


def _moves_something(machine: CallArguments, function: ast.expr) -> bool:
    """Whether a function moves something, where it can be read."""
    found = machine.readable(function)
    calls = (part for part in ast.walk(found) if isinstance(part, ast.Call)) if found is not None else ()
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES for call in calls)


def _is_looked_after(body: ast.AST, optimizer: str) -> bool:
    """Whether some call gets the optimizer and a device, or prepares it: `optimizer_to(optimizer, device)`."""
    calls = (call for call in ast.walk(body) if isinstance(call, ast.Call))
    return any(_gets(call, optimizer) and _places(call) for call in calls)


def _may_be_placed(body: ast.AST, path: str, load: ast.Call) -> bool:
    """Whether some call before a place may put the module at a path on a device: it gets both, or gives it wrapped."""
    for statement in statements(body):
        if not isinstance(statement, (ast.Assign, ast.Expr)) or statement.lineno >= load.lineno:
            continue
        bound = any(ast.unparse(n) == path for t in getattr(statement, "targets", ()) for n in _stored(t))
        calls = (
            (c for c in ast.walk(statement) if isinstance(c, ast.Call))
            if bound or isinstance(statement, ast.Expr)
            else ()
        )
        if any((bound or _gets(call, path)) and _places(call) for call in calls):
            return True
    return False


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _gets(call: ast.Call, text: str) -> bool:
    return any(ast.unparse(argument) == text for argument in _given(call))


def _places(call: ast.Call) -> bool:
    """Whether a call is given a device, or places things by its own choice."""
    return last_name(call.func) in _PLACING or any(is_sign(n) for given in _given(call) for n in ast.walk(given))


def note_helper(
    machine: CallArguments,
    node: ast.Call,
    helper: ast.AST,
    arguments: Arguments,
    own: bool,
    home: Scan | None = None,
) -> None:
    """A function is called that loads the state of an optimizer: one that it is handed, or one of `self`.

    `own`: the call is one of a method of `self`. `home`: the file of the function, where it is another one. Not where the
    function moves something, or touches the state itself.
    """
    if not machine.optimizers & machine.state.env.keys() or machine.host:
        return
    calls = [c for c in (home or machine.scan).calls_in(helper) if isinstance(c.func, ast.Attribute)]
    loaders = [c.func.value for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "load_state_dict"]
    if not loaders or any(c.func.attr in _MOVES for c in calls if isinstance(c.func, ast.Attribute)):
        return
    given = arguments.by_name(parameter_names(helper)[own:])
    for loader in loaders:
        if isinstance(loader, ast.Name):
            value = given.get(loader.id)
        else:
            path = machine.path(loader) if own else None
            value = machine.lookup(path) if path is not None and path.startswith("self.") else None
        if value is not None and value.kind == "optimizer" and not is_state_touched(helper, loader):
            note_state(machine, node, value, "load_state_dict")


def is_state_touched(body: ast.AST, optimizer: ast.expr) -> bool:
    """Whether some code reads the state of an optimizer, to move it for the most part: `optimizer.state.values()`."""
    return ast.unparse(optimizer) in _asked_for_state(body)


@lru_cache(64)
def _asked_for_state(body: ast.AST) -> frozenset[str]:
    """What some code reads `state` of."""
    return frozenset(ast.unparse(n.value) for n in walk(body) if isinstance(n, ast.Attribute) and n.attr == "state")


def note_move(
    machine: CallArguments, node: ast.Call, operand: Operand, target: Value | None, within: bool = False
) -> None:
    """A module, or what may be one, moves: emit `OptimizerOrder` when an optimizer has its parameters already.

    `within`: the function moves it that the call `node` gives it to.
    """
    path = machine.path(operand.node)
    if path is None or operand.value.kind not in _MAY_BE_MODULES:
        return
    env = machine.state.env
    own = _key(OPTIMIZED, path)
    keys = [key for key in machine.optimizers if key in env and (key == own or key.startswith(own + "/"))]
    if target is None or not may_be_accelerator(target.device):
        for key in keys:
            del env[key]  # a model that comes and goes
        return
    env[_key(_MOVED, path)] = NONE
    for key in sorted(keys):
        entry = env.pop(key)
        if entry.kind != "optimizer" or not entry.made or entry.device == target.device:
            continue
        if "accelerator" in machine.guards.fails or machine.host:
            continue
        creation = entry.made[0]
        body = _body(machine)
        if (
            body is None
            or _replaced(path, body, creation.node, node, wrapped=False)
            or _made_anew(body, creation, node)
            or _moved_in_first_turn(machine, body, node, entry)
            or _is_state_moved(body, creation)
        ):
            continue
        origin = Origin(machine.span(node), f"`{path}` is moved to {describe(target.device)} here")
        state_at_once = (entry.type_name or "").rsplit(".", 1)[-1] in _STATE_AT_ONCE
        machine.emit(
            OptimizerOrder(
                machine.span(node), node, (*entry.because, origin), machine.guards, machine.scope(), machine.name,
                operand, target, creation, any(o.text == _STATE["load_state_dict"] for o in entry.because),
                any(o.text == _STATE["step"] for o in entry.because), state_at_once,
                not within and _may_swap(path, body, creation, node),
            )
        )  # fmt: skip


def note_moved_within(
    machine: CallArguments, node: ast.Call, function: ast.AST, operand: Operand, moved: Value
) -> None:
    """A function moves the module that a call gives it; not where it handles the state of an optimizer, or makes one."""
    for part in ast.walk(function):
        if isinstance(part, ast.Attribute) and part.attr in ("state", "load_state_dict"):
            return
        if isinstance(part, ast.Call) and _MAKER.match(ast.unparse(part.func)) is not None:
            return
    note_move(machine, node, operand, Value("device", moved.device), within=True)


def _key(word: str, path: str) -> str:
    """An entry of the state that stays when one of two branches makes it, as those of plain names do."""
    return word + path.replace(".", "/").replace("[", "(")


def _prefixes(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts)) if parts[end] != "self" or end]


def _body(machine: CallArguments) -> ast.AST | None:
    return machine.function.node if machine.function is not None else machine.scan.tree


def _modules(machine: CallArguments, node: ast.expr, call: ast.Call) -> list[str]:
    """The modules whose parameters an expression holds: by itself, or through a name that was filled with them."""
    found = dict.fromkeys(_owners(machine, node))
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    body = _body(machine)
    if not found and names and body is not None:
        for statement in statements(body):
            if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.For)) or statement.lineno >= call.lineno:
                continue
            if isinstance(statement, ast.For):
                filled = {n.id for s in statement.body for n in ast.walk(s) if isinstance(n, ast.Name)}
                source: ast.expr = statement.iter
            else:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                filled = {t.id for t in targets if isinstance(t, ast.Name)}
                source = statement.value
            if filled & names:
                found.update(dict.fromkeys(_owners(machine, source)))
    return list(found)


def _owners(machine: CallArguments, node: ast.expr) -> Iterator[str]:
    """The paths of `X.parameters()` and `X.named_parameters()` in an expression."""
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and child.attr in ("parameters", "named_parameters"):
            path = machine.path(child.value)
            if path is not None and path != "self":
                yield path


def _replaced(path: str, body: ast.AST, first: ast.AST, last: ast.AST, wrapped: bool) -> bool:
    """Whether something else is bound to the path between two places. `wrapped`: `m = wrap(m)` counts as well."""
    start, end = getattr(first, "lineno", 0), getattr(last, "lineno", 0)
    for child in _bindings(body).get(path, ()):
        if start < child.lineno < end:
            value = getattr(child, "value", None)
            mentions = value is not None and path in ast.unparse(value)
            if (wrapped or not mentions) and not any(holds(arm, child) for arm in _other_arms(body, first)):
                return True
    return False


@lru_cache(64)
def _bindings(body: ast.AST) -> dict[str, list[ast.stmt]]:
    """The statements of some code that bind something, by its text."""
    found: dict[str, list[ast.stmt]] = {}
    for child in statements(body):
        if not isinstance(child, ast.stmt):
            continue
        for target in getattr(child, "targets", None) or [getattr(child, "target", None)]:
            for each in _stored(target) if isinstance(target, ast.expr) else ():
                found.setdefault(ast.unparse(each), []).append(child)
    return found


@lru_cache(64)
def _blocks(body: ast.AST) -> tuple[list[ast.stmt], ...]:
    """Every list of statements of some code."""
    return tuple(blocks(body))


def _place_in(block: list[ast.stmt], node: ast.AST) -> int | None:
    """Which statement of a block a node stands in; None where it is in none."""
    row = getattr(node, "lineno", 0)
    place = bisect_right(block, row, key=lambda statement: statement.lineno) - 1
    while place >= 0 and row <= (block[place].end_lineno or 0):  # several may stand on one row
        if holds(block[place], node):
            return place
        place -= 1
    return None


@lru_cache(64)
def _assigned(body: ast.AST) -> dict[int, ast.Assign]:
    """The assignments of some code, by the identity of what they give."""
    return {id(s.value): s for s in statements(body) if isinstance(s, ast.Assign)}


def _other_arms(body: ast.AST, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements that run only where a node does not: those of the other arm of each `if` around it."""
    for child in statements(body):
        if isinstance(child, ast.If) and child.orelse and any(_has(each, node) for each in child.body):
            yield from child.orelse


def _made_anew(body: ast.AST, creation: Creation, move: ast.Call) -> bool:
    """Whether the first that happens to the optimizer's name after a move is that another one gets it."""
    made = _assigned(body).get(id(creation.node))
    if made is None or not isinstance(made.targets[0], ast.Name):
        return False
    name = made.targets[0].id
    around = [(block, at) for block in _blocks(body) if (at := _place_in(block, move)) is not None]
    for block, at in sorted(around, key=lambda found: -found[0][0].col_offset):  # the innermost first
        for statement in islice(block, at + 1, None):
            if name in _names(statement):
                if not isinstance(statement, ast.Assign) or name in _names(statement.value):
                    return False
                return any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)
    return False


def _moved_in_first_turn(machine: CallArguments, body: ast.AST, move: ast.Call, entry: Value) -> bool:
    """Whether a move stands in a loop before all that gives the optimizer state, under conditions that no turn changes: it
    was made in the first turn, or is made in none.

    `if use_cuda: net.cuda()`, and further down in the same loop `optimizer.step()`.
    """
    span, stated = machine.span(move), [o.span for o in entry.because if o.text in _STATE.values()]
    if not stated or any(each.start < span.end for each in stated):
        return False
    loops = [s for s in statements(body) if isinstance(s, (ast.For, ast.While)) and _has(s, move)]
    spans = [machine.span(each) for each in loops]
    if not loops or any(each.start > max(spans, key=lambda span: span.start).end for each in stated):
        return False
    outer = [each for each in loops if not any(_has(each, creation.node) for creation in entry.made)] or loops[-1:]
    loop = min(outer, key=lambda each: each.lineno)  # it holds the step as well, as the innermost one does
    changed = (*_changed_in(loop), _set_later(machine.scan.tree))
    ways = [s for s in statements(loop) if isinstance(s, (ast.If, ast.Try, ast.Match)) and _has(s, move)]
    return all(isinstance(way, ast.If) and _is_settled(way.test, *changed) for way in ways)


def _is_settled(test: ast.expr, bound: set[str], called: set[str], later: set[str]) -> bool:
    """Whether a condition is the same in each turn of a loop, which binds some paths and calls something on some names.

    `later`: the attributes that the file sets outside constructors, which calls on `self` may change.
    """
    for node in walk(test):
        if isinstance(node, ast.Call) and last_name(node.func) != "is_available":
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in bound:
            return False
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.value, ast.Name):
            root, name = node.value.id, node.attr if isinstance(node, ast.Attribute) else ""
            if root in called and root != "torch" and (root != "self" or name in later):
                return False
    return True


@lru_cache(64)
def _changed_in(loop: ast.stmt) -> tuple[set[str], set[str]]:
    """The paths that a loop binds, with what holds the items that it stores, and the names that it calls something on."""
    bound: set[str] = set()
    called: set[str] = set()
    for node in walk(loop):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            bound.add(ast.unparse(node))
            held: ast.expr = node
            while isinstance(held, ast.Subscript):
                held = held.value
                bound.add(ast.unparse(held))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            root: ast.expr = node.func
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            called.update({root.id} if isinstance(root, ast.Name) else ())
    return bound, called


@lru_cache(8)
def _set_later(tree: ast.AST) -> set[str]:
    """The attributes that the functions of a file set, other than constructors."""
    functions = (
        n for n in walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name != "__init__"
    )
    stored = (n for f in functions for s in f.body for n in walk(s) if isinstance(n, ast.Attribute))
    return {n.attr for n in stored if isinstance(n.ctx, ast.Store)}


def _is_state_moved(body: ast.AST, creation: Creation) -> bool:
    """Whether the code moves the state of the optimizer by itself: its target is asked for `state`."""
    around = (_simple_at(block, creation.node) for block in _blocks(body))
    targets = [statement.targets[0] for statement in around if isinstance(statement, ast.Assign)]
    return any(isinstance(t, (ast.Name, ast.Attribute)) and is_state_touched(body, t) for t in targets)


def _has(outer: ast.stmt | ast.expr, inner: ast.AST) -> bool:
    """Whether a node stands below another one; only one on its rows is looked for."""
    row, end = getattr(inner, "lineno", 0), outer.end_lineno or 0
    return outer.lineno <= row <= end and holds(outer, inner)


def _simple_at(block: list[ast.stmt], node: ast.AST) -> ast.Expr | ast.Assign | None:
    """The statement of a block that a node stands in, if it is an expression or an assignment."""
    place = _place_in(block, node)
    found = block[place] if place is not None else None
    return found if isinstance(found, (ast.Expr, ast.Assign)) and holds(found.value, node) else None


@lru_cache(4096)
def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in walk(node) if isinstance(n, ast.Name))


def _stored(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _may_swap(path: str, body: ast.AST, creation: Creation, move: ast.Call) -> bool:
    """Whether the move can be put before the optimizer: two simple statements of one block, whose names are the same."""
    for block in _blocks(body):
        maker, mover = _simple_at(block, creation.node), _simple_at(block, move)
        if maker is not None and mover is not None and mover.value is move and maker.lineno < mover.lineno:
            root = path.split(".", 1)[0]
            used = {n.id for n in ast.walk(move) if isinstance(n, ast.Name)} - {root}
            if isinstance(mover, ast.Assign) and ast.unparse(mover.targets[0]) != path:
                return False
            if _replaced(path, body, creation.node, move, wrapped=True):
                return False
            known = all(n in creation.scope and not _replaced(n, body, creation.node, move, True) for n in used)
            return known or not used
    return False
