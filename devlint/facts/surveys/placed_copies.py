"""Copies of a model that a class puts on a device of its own, and combines with the model's tensors as they are.

    self.average = copy.deepcopy(model)
    if device is not None:
        self.average.to(device=device)
    ...
    average.copy_(param.to(device=self.device))   # one method brings there what it takes
    average.lerp_(param, 0.1)                     # and another one does not

That one method moves shows that the model may be elsewhere. What runs only where no such device is set is left alone: under a
condition that asks for it, or for a flag that is set beside the move.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.events import Meet, Operand
from devlint.facts.surveys.early_copies import event
from devlint.facts.surveys.outline import Outline
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.kept_states import Copy, copies, taken_over
from devlint.facts.text.method_names import PLACES
from devlint.facts.text.module_states import States
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import HOME, Value, symbol
from devlint.model import Origin

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def placed_copies(o: Outline) -> Iterator[Meet]:
    """The operations on a copy that is on a device of its own and on the model's tensors."""
    if not o.flow.assume:
        return
    for class_ in o.flow.classes.values():
        init = class_.methods.get("__init__")
        if class_.abroad or init is None or not any(map(is_move_of_own, o.flow.scan.calls_in(init))):
            continue
        for copy in copies(class_).values():
            if (
                copy.what == "given"
                and copy.maker == "__init__"
                and not copy.others
                and not copy.root.startswith("self.")
            ):
                yield from mixed(o, class_, init, copy)


def mixed(o: Outline, class_: ClassFacts, init: ast.FunctionDef | ast.AsyncFunctionDef, copy: Copy) -> Iterator[Meet]:
    """The meetings of one copy with the model in methods that do not move what they take."""
    given = parameter_names(init)
    places = {p for p in given if p != copy.root} | {f"self.{a}" for a, p in taken_over(init).items() if p != copy.root}
    moves = [c for name in class_.methods for c in moves_of(o, class_, name, f"self.{copy.attribute}")]
    if len(moves) != 1 or o.function(moves[0]) is not init or target_of(moves[0]) not in places:
        return
    readers = {name: States(m, {copy.attribute: copy.what}) for name, m in class_.methods.items() if m is not init}
    own = f"self.{target_of(moves[0]).removeprefix('self.')}"
    brought = next((c for states in readers.values() for c in brings(states, own)), None)
    if brought is None:
        return
    device = symbol(own, o.flow.span(class_.node).start)
    because = (Origin(o.flow.span(moves[0]), f"the copy is put on `{target_of(moves[0])}` here"),)
    kept_value = Value("tensor", device, False, because=because)
    origin = Origin(o.flow.span(brought), f"values of the model are moved to `{own}` here")
    taken_value = Value("tensor", HOME, False, because=(origin,))
    flags = flags_beside(o, moves[0])
    for name, states in readers.items():
        if leaves_early(states, own) or is_prepared(o, readers, name, own, flags):
            continue
        for meeting in states.meetings():
            sides = {meeting.left[1]: meeting.left[0], meeting.right[1]: meeting.right[0]}
            kept = sides.pop(f"self.{copy.attribute}", None)
            (root, taken), *_ = sides.items()
            if kept is None or root not in states.parameters or is_left_out(o, meeting.node, own, flags):
                continue
            off: Operand = o.flow.operand(taken, taken_value)
            yield event(o, meeting, off, o.flow.operand(kept, kept_value), "assume")


def is_prepared(o: Outline, readers: dict[str, States], name: str, own: str, flags: dict[str, bool]) -> bool:
    """Whether a method of the class that calls this one asks for the device first, or hands it what it moved."""
    for states in readers.values():
        for node in states.nodes:
            if not isinstance(node, ast.Call) or not is_self_attribute(node.func) or last_name(node.func) != name:
                continue
            if leaves_early(states, own) or is_left_out(o, node, own, flags):
                return True
            if any(isinstance(n, ast.Attribute) and n.attr == "to" for a in node.args for n in walk(a)):
                return True
    return False


def moves_of(o: Outline, class_: ClassFacts, method: str, path: str) -> Iterator[ast.Call]:
    """The moves of an attribute, or of the whole object, in a method: `self.average.to(device)`."""
    for call in o.flow.scan.calls_in(class_.methods[method]):
        if isinstance(call.func, ast.Attribute) and call.func.attr in PLACES:
            if ast.unparse(call.func.value) in (path, "self"):
                yield call


def is_move_of_own(call: ast.Call) -> bool:
    """Whether a call may move an attribute, or the whole object."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in PLACES:
        return False
    return is_self_attribute(function.value) or (isinstance(function.value, ast.Name) and function.value.id == "self")


def target_of(move: ast.Call) -> str:
    """Where `.to(device)` or `.to(device=device)` moves to, as the code writes it."""
    given = [k.value for k in move.keywords if k.arg == "device"] or move.args[:1]
    plain = last_name(move.func) == "to" and given and isinstance(given[0], (ast.Name, ast.Attribute))
    return ast.unparse(given[0]) if plain else ""


def brings(states: States, own: str) -> Iterator[ast.Call]:
    """The calls of a method that bring a tensor of an argument to the object's own device."""
    for node in states.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and target_of(node) == own:
            taken = states.tensor(node.func.value)
            if taken is not None and taken.root in states.parameters:
                yield node


def flags_beside(o: Outline, move: ast.Call) -> dict[str, bool]:
    """The attributes that are set to a truth value in the block of a move: `self.foreach = False`."""
    statement = o.statement(move)
    found: dict[str, bool] = {}
    for each in o.block(statement) if statement is not None else ():
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, bool):
            found.update({f"self.{t.attr}": each.value.value for t in each.targets if isinstance(t, ast.Attribute)})
    return found


def leaves_early(states: States, own: str) -> bool:
    """Whether a method is left where a condition asks for the device."""
    return any(
        isinstance(node, ast.If)
        and asks(node.test, own)
        and any(isinstance(n, _LEAVES) for n in (*node.body, *node.orelse))
        for node in states.nodes
    )


def asks(test: ast.expr, own: str) -> bool:
    """Whether a condition is about devices."""
    return any(
        "device" in last_name(n) or "cuda" in last_name(n) or (is_self_attribute(n) and ast.unparse(n) == own)
        for n in walk(test)
        if isinstance(n, (ast.Name, ast.Attribute))
    )


def is_left_out(o: Outline, node: ast.AST, own: str, flags: dict[str, bool]) -> bool:
    """Whether a place is reached under a condition that asks for the device, or not at all with the flags of a move."""
    child = node
    for above in o.above(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(above, (ast.If, ast.IfExp, ast.While)) and child is not above.test:
            body = above.body if isinstance(above.body, list) else [above.body]
            test, taken = above.test, child in body
            if asks(test, own):
                return True
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, taken = test.operand, not taken
            told = [ast.unparse(n) for n in walk(test) if is_self_attribute(n) and ast.unparse(n) in flags]
            if told and (len(told) > 1 or ast.unparse(test) != told[0] or flags[told[0]] is not taken):
                return True
        child = above
    return False
