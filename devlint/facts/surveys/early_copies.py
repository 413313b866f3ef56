"""Copies of a model's state that an object makes before the model moves: they stay on the CPU and meet it later.

    model = Net()
    ema = EMA(model)              # clones the parameters
    model.to(device)
    ema.update(model)             # new = 0.1 * param + 0.9 * self.shadow[name]

The class moves nothing, and nothing else in the file reaches for its copies. The finding is where it combines both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from devlint.facts.events import NO_GUARDS, How, Meet, Move, Operand
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.objects import sets_by_name
from devlint.facts.surveys.outline import Outline, dotted
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.kept_states import Copy, copies, taken_over
from devlint.facts.text.method_names import PLACES
from devlint.facts.text.module_states import Meeting, States
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import calls_parameter, named_parameters, positional_names
from devlint.facts.values import CPU, Conflict, Value, conflict, describe, may_be_accelerator
from devlint.model import Origin

#: What shows that a class, or who reads an attribute of it, looks after the device of what it keeps.
_PLACES = PLACES | {"type_as", "to_empty", "_apply", "device", "get_device"}
_OF_MODULE = frozenset({"parameters", "named_parameters", "state_dict"})
#: What code outside does with a copied module that leaves it where it is.
_HARMLESS = frozenset({"eval", "train", "state_dict", "load_state_dict", "parameters", "named_parameters"})
#: Names of functions that move what they are given, and of devices.
_PLACING = re.compile(r"(?i)device|cuda|gpu|(^|_)(to|dev|move|place|put|send|push|transfer|prepare)(_|$)")
_LEAVES = (ast.Return, ast.Raise, ast.Continue)
_DEPTH = 3


def early_copies(o: Outline) -> Iterator[Meet]:
    """The operations that bring a model and a copy of its state together that an object made before the model moved."""
    flow = o.flow
    if sets_by_name(flow.source.text):
        return
    names = {class_.name for class_, _, _ in flow.constructions.values() if not class_.abroad}
    calls = {flow.span(call): call for name in names for call, _ in flow.scan.calls.get(name, ())}
    kept: dict[str, dict[str, Copy]] = {}
    for span, (class_, arguments, _) in flow.constructions.items():
        call = calls.get(span)
        if call is None or class_.abroad or last_name(call.func) != class_.name:
            continue
        if class_.name not in kept:
            kept[class_.name] = {} if places(class_) else copies(class_)
        for copy in kept[class_.name].values():
            yield from met(o, class_, copy, call, arguments)


def places(class_: ClassFacts) -> bool:
    """Whether anything in a class speaks of devices or moves something, or binds attributes under computed names."""
    for node in walk(class_.node):
        if isinstance(node, ast.Attribute) and node.attr in _PLACES:
            return True
        if isinstance(node, (ast.arg, ast.keyword)) and "device" in (node.arg or ""):
            return True
        if isinstance(node, ast.Name) and ("device" in node.id or node.id in ("setattr", "vars")):
            return True
    return any(map(calls_parameter, class_.methods.values()))


def met(o: Outline, class_: ClassFacts, copy: Copy, made: ast.Call, arguments: Arguments) -> Iterator[Meet]:
    """The meetings of one object's copy with the model that it was taken from, which moved since."""
    init, held = class_.methods.get("__init__"), holder(o, made)
    if init is None or held is None or any(n == "__init__" or n in o.flow.scan.calls for n in copy.others):
        return
    aliases = taken_over(init)
    source = source_of(copy, class_, aliases)
    if source is None:
        return
    names = positional_names(init.args)
    given = arguments.get(source, names.index(source) - 1 if source in names else None)
    model = model_of(given) if given is not None else None
    own = held.startswith("self.")
    again = any(own or o.scope(call) is o.scope(made) for call in calls_on(o, held, copy.maker))
    taken = last_call(o, held, copy.maker, made) if again else made if is_made_at_once(class_, copy) else None
    if (
        model is None
        or taken is None
        or is_made_by_others(class_, copy)
        or not is_bound_once(o, model, made)
        or is_reached(o, class_, copy, held, last_name(model))
    ):
        return
    move = next((m for m in moves(o, model, made) if follows(o, taken, m.node)), None)
    if move is None or move.target is None or not all(is_forward(m) for m in moves(o, model, made)):
        return
    level = conflict(CPU, move.target.device)
    if level is None:
        return
    text = dotted(model)
    off = Value(
        "tensor",
        CPU,
        False,
        because=(
            Origin(o.flow.span(copy.node), "copied here, and never moved"),
            Origin(o.flow.span(taken), f"`{text}` is on the CPU when its state is copied here"),
        ),
    )
    because = (Origin(move.span, f"`{text}` is moved to {describe(move.target.device)} here, without the copy"),)
    other = Value("tensor", move.target.device, False, because=because)
    for name, roots in reached(o, class_, held, model, source, aliases, move.node).items():
        method = class_.methods[name]
        for meeting in States(method, {copy.attribute: copy.what}).meetings():
            sides = {meeting.left[1]: meeting.left[0], meeting.right[1]: meeting.right[0]}
            kept = sides.pop(f"self.{copy.attribute}", None)
            beside = next((node for root, node in sides.items() if root in roots), None)
            if kept is not None and beside is not None:
                yield event(o, meeting, o.flow.operand(kept, off), o.flow.operand(beside, other), level)


def event(o: Outline, meeting: Meeting, off: Operand, other: Operand, level: Conflict) -> Meet:
    """The operation that brings a copy and its model together."""
    node = meeting.node
    how: How = "method" if isinstance(node, ast.Call) else "operator"
    because = (*off.value.because, *other.value.because)
    return Meet(
        o.flow.span(node), node, because, NO_GUARDS, {}, o.name(node), how, meeting.operation, off, other,
        level,
    )  # fmt: skip


def holder(o: Outline, made: ast.Call) -> str | None:
    """The name or attribute that alone holds the object that a call makes, and nothing else anywhere in its scope."""
    statement = o.parent.get(made)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    path = dotted(statement.targets[0])
    return path if path is not None and len(o.assignments(path, made)) == 1 else None


def source_of(copy: Copy, class_: ClassFacts, aliases: Mapping[str, str]) -> str | None:
    """The parameter of `__init__` whose state a copy is of."""
    if copy.root.startswith("self."):
        return aliases.get(copy.root[5:])
    init = class_.methods["__init__"]
    return copy.root if copy.maker == "__init__" and copy.root in positional_names(init.args) else None


def model_of(given: tuple[ast.expr, Value]) -> ast.expr | None:
    """The module on the CPU whose state a constructor is given: `model`, or that of `model.parameters()`."""
    node, value = given
    if value.device != CPU or value.kind not in ("module", "object", "dict"):
        return None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_MODULE:
        node = node.func.value
    elif value.kind != "module" or value.moved:
        return None
    return node if dotted(node) is not None else None


def is_bound_once(o: Outline, model: ast.expr, made: ast.Call) -> bool:
    """Whether the model's name stands for one model, but for what is made of it: `model = model.to(device)`."""
    path = dotted(model) or ""
    bound = [v for v in o.assignments(path, made) if v is None or all(dotted(n) != path for n in walk(v))]
    return len(bound) == 1 and bound[0] is not None


def is_made_at_once(class_: ClassFacts, copy: Copy) -> bool:
    """Whether `__init__` makes a copy, or calls the method that does."""
    called = [n.func for n in walk(class_.methods["__init__"]) if isinstance(n, ast.Call)]
    return copy.maker == "__init__" or any(is_self_attribute(f) and last_name(f) == copy.maker for f in called)


def is_made_by_others(class_: ClassFacts, copy: Copy) -> bool:
    """Whether methods other than `__init__` call the one that makes a copy, and may make it anew."""
    return any(
        isinstance(n, ast.Call) and is_self_attribute(n.func) and last_name(n.func) == copy.maker
        for name, method in class_.methods.items()
        if name != "__init__"
        for n in walk(method)
    )


def calls_on(o: Outline, held: str, method: str) -> Iterator[ast.Call]:
    """The calls of a method on what has the last name of the object."""
    for call, _ in o.flow.scan.calls.get(method, ()):
        if isinstance(call.func, ast.Attribute) and last_name(call.func.value) == held.rpartition(".")[2]:
            yield call


def last_call(o: Outline, held: str, method: str, made: ast.Call) -> ast.Call | None:
    """The last call of the method that makes a copy; None where one is made elsewhere."""
    found = sorted(calls_on(o, held, method), key=lambda call: call.lineno)
    every = [call.func for call, _ in o.flow.scan.calls.get(method, ())]
    others = [f for f in every if not (isinstance(f, ast.Attribute) and last_name(f.value) == "self")]
    same = bool(found) and all(o.scope(call) is o.scope(made) for call in found)
    return found[-1] if same and len(found) == len(others) else None


def is_reached(o: Outline, class_: ClassFacts, copy: Copy, held: str, model: str) -> bool:
    """Whether code outside the class may move the copy, or the object that registers it."""
    if any(is_placing(call, held) for call in o.handed.get(held, ())):
        return True
    inside = set(map(id, walk(class_.node)))
    for node in o.attributes.get(copy.attribute, ()):
        outer = o.parent.get(node)
        if id(node) in inside or is_self_attribute(node) or last_name(node.value) == model:
            continue
        if copy.what != "given" or not (isinstance(outer, ast.Attribute) and outer.attr in _HARMLESS):
            return True
    last = held.rpartition(".")[2]
    for method in class_.methods:
        for call in calls_on(o, held, method):
            if isinstance(o.parent.get(call), (ast.For, ast.comprehension)):
                return True  # what its methods give may be the copy itself
    placed = (node for name in _PLACES for node in o.attributes.get(name, ()))
    if any(last_name(node.value) == last and id(node) not in inside for node in placed):
        return True
    return class_.is_module and held in o.handed


def is_placing(call: ast.Call, held: str) -> bool:
    """Whether a call hands the object to what may move its parts, as its name or a device beside the object says."""
    given = (*call.args, *(k.value for k in call.keywords))
    return any(_PLACING.search(last_name(n)) for n in (call.func, *given) if dotted(n) != held)


def moves(o: Outline, model: ast.expr, made: ast.Call) -> list[Move]:
    """The moves of the model in the function that makes the object, after that."""
    path, scope = dotted(model), o.scope(made)
    after = [
        e for e in o.moves.get(path or "", ()) if e.span.start > o.flow.span(made).start and o.scope(e.node) is scope
    ]
    return sorted(after, key=lambda e: e.span.start)


def is_forward(move: Move) -> bool:
    """Whether a move takes a module to what may be an accelerator."""
    return move.receiver.value.kind == "module" and move.target is not None and may_be_accelerator(move.target.device)


def follows(o: Outline, first: ast.AST, second: ast.AST) -> bool:
    """Whether a place comes after another one of its function, and no condition has them in two arms.

    Not after a place in an arm that ends by leaving: `if args.test: model.to(device); return test(model)`.
    """
    if o.flow.span(second).start < o.flow.span(first).end:
        return False
    around = list(o.above(first))
    child: ast.AST = second
    for above in o.above(second):
        if above in around:
            way = [first, *around[: around.index(above)]]
            if any(leaves(part, inner) for inner, part in pairwise(way)):
                return False
            if isinstance(above, (ast.If, ast.Try, ast.Match)):
                arm = around[around.index(above) - 1] if around.index(above) else first
                return any(
                    arm in block and child in block for block in (above_block(above, n) for n in ("body", "orelse"))
                )
            return True
        child = above
    return True


def leaves(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether the block that holds a node ends by leaving."""
    arms = (above_block(outer, name) for name in ("body", "orelse", "finalbody"))
    return any(isinstance(arm, list) and inner in arm and isinstance(arm[-1], _LEAVES) for arm in arms)


def above_block(node: ast.AST, name: str) -> list[ast.AST]:
    return getattr(node, name, [])


def reached(
    o: Outline, class_: ClassFacts, held: str, model: ast.expr, source: str, aliases: Mapping[str, str], move: ast.AST
) -> dict[str, set[str]]:
    """The methods that run after the move, with the paths that stand for the model in each."""
    own = {f"self.{name}" for name, parameter in aliases.items() if parameter == source}
    found: dict[str, set[str]] = {}
    for name, method in class_.methods.items():
        if name == "__init__":
            continue
        for call in calls_on(o, held, name):
            here = o.scope(call) is o.scope(move)
            if here and not follows(o, move, call):
                continue
            roots = {p for p, node in bound(method, call) if is_model(node, model, here)}
            found.setdefault(name, set(own)).update(roots)
    pending = list(found)
    for name in pending:  # which grows
        states = States(class_.methods[name], {})
        for node in states.nodes:
            target = last_name(node.func) if isinstance(node, ast.Call) and is_self_attribute(node.func) else ""
            if not isinstance(node, ast.Call) or target not in class_.methods or len(pending) > 4 * _DEPTH:
                continue
            pairs = [(p, states.of(a)) for p, a in bound(class_.methods[target], node)]
            roots = own | {p for p, state in pairs if state is not None and state.root in found[name]}
            if not roots <= found.get(target, set()) or target not in found:
                found.setdefault(target, set()).update(roots)
                pending.append(target)
    return found


def bound(method: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """The parameters of a method with what a call gives them, as far as it shows."""
    pairs = list(zip(positional_names(method.args)[1:], call.args, strict=False))
    known = {a.arg for a in named_parameters(method.args)}
    return pairs + [(k.arg, k.value) for k in call.keywords if k.arg in known and k.arg is not None]


def is_model(node: ast.expr, model: ast.expr, here: bool) -> bool:
    """Whether an argument is the model, or its parameters; in another function what has its last name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_MODULE:
        node = node.func.value
    return dotted(node) == dotted(model) if here else last_name(node) == last_name(model)
