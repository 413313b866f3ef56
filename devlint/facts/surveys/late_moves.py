"""Methods that load the state of an optimizer and then move the model whose parameters it has.

    self.optimizer = make(self.model.parameters())    # in another method
    ...
    self.optimizer.load_state_dict(checkpoint["optimizer"])
    self.model.to(self.device)

`load_state_dict` puts the state where the parameters are at that moment [torch/optim/optimizer.py,
`_process_value_according_to_param_policy`]; the next step finds it there, and the parameters elsewhere. What one method does
by itself is seen while it is run (`idioms/ordering.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.events import Creation, Move, Operand, OptimizerOrder
from devlint.facts.idioms.ordering import is_state_touched
from devlint.facts.interpreter.moves import is_construction
from devlint.facts.surveys.outline import Outline, dotted, own_nodes
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import chain, given, is_own_attribute, is_self_attribute, last_name
from devlint.facts.text.signatures import parameter_names
from devlint.facts.text.signs import is_sign, moves
from devlint.facts.values import Value, describe, may_be_accelerator
from devlint.model import Origin

_STATE = "the optimizer gets its state here"
#: What makes new modules somewhere else than on the CPU.
_DEFAULTS = ("set_default_device", "set_default_tensor_type")
#: Functions that move nothing of what they are given.
_ONLY_LOOK = frozenset(
    {"isinstance", "hasattr", "getattr", "type", "len", "print", "str", "repr", "id", "info", "debug"}
)


def late_moves(o: Outline) -> Iterator[OptimizerOrder]:
    """The moves of models after the state of their optimizers came back, where nothing else of the class moves them."""
    if any(name in o.flow.scan.calls for name in _DEFAULTS):
        return
    for class_ in o.classes:
        for maker, optimizer, model in _optimizers(class_):
            if not is_state_touched(class_, optimizer):
                yield from _after_loading(o, class_, maker, optimizer, model)


def _optimizers(class_: ast.ClassDef) -> Iterator[tuple[ast.Call, ast.Attribute, ast.Attribute]]:
    """The calls that make an optimizer of the parameters of a part of an object, its attribute, and the part."""
    for node in walk(class_):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Call):
            continue
        target = node.targets[0]
        if not isinstance(target, ast.Attribute) or not is_self_attribute(target) or "optim" not in target.attr.lower():
            continue
        for part in (*node.value.args, *(k.value for k in node.value.keywords)):
            function = part.func if isinstance(part, ast.Call) else None
            if isinstance(function, ast.Attribute) and function.attr == "parameters":
                if isinstance(function.value, ast.Attribute) and is_self_attribute(function.value):
                    yield node.value, target, function.value


def _after_loading(
    o: Outline, class_: ast.ClassDef, maker: ast.Call, optimizer: ast.Attribute, model: ast.Attribute
) -> Iterator[OptimizerOrder]:
    moved = [
        call
        for call in _calls(class_)
        if moves(call) and _is_of(call, model.attr) and not _was_away(o.function(call), model.attr)
    ]
    if len(moved) != 1 or o.nearest(moved[0], ast.ClassDef) is not class_:
        return
    if _comes_moved(o, class_, model.attr) or _is_moved_by_another_name(o, class_, model.attr):
        return
    move = moved[0]
    method = o.function(move)
    event = next((e for e in o.flow.events.values() if isinstance(e, Move) and e.node is move), None)
    if event is None or event.target is None or not may_be_accelerator(event.target.device):
        return
    if method is None or method is o.function(maker) or "accelerator" in event.under.fails:
        return
    loads = [
        call for call in _calls(method) if _is_of(call, optimizer.attr) and last_name(call.func) == "load_state_dict"
    ]
    before = [call for call in loads if _runs_before(o, call, move)]
    if not before or any(_binds(node, optimizer.attr) for node in own_nodes(method)):
        return
    flow = o.flow
    made = Origin(flow.span(maker), f"the optimizer gets the parameters of `self.{model.attr}` here")
    where = Origin(flow.span(move), f"`self.{model.attr}` is moved to {describe(event.target.device)} here")
    yield OptimizerOrder(
        event.span, move, (made, Origin(flow.span(before[0]), _STATE), where), event.under, event.scope, event.function,
        Operand(flow.span(model), model, f"self.{model.attr}", Value("module")), event.target,
        Creation(flow.span(maker), dotted(maker.func) or "Optimizer", maker, {}), True, False, False, False,
    )  # fmt: skip


def _was_away(method: ast.AST | None, name: str) -> bool:
    """Whether a method brings `self.name` to the CPU first, to save it for the most part: it only returns afterwards."""
    away = (call.func for call in _calls(method) if last_name(call.func) == "cpu") if method is not None else ()
    return any(is_own_attribute(part, name) for func in away for part in chain(func))


def _calls(around: ast.AST) -> Iterator[ast.Call]:
    return (node for node in walk(around) if isinstance(node, ast.Call))


def _is_of(call: ast.Call, name: str) -> bool:
    """Whether a call is one of a method of `self.name`."""
    return isinstance(call.func, ast.Attribute) and is_own_attribute(call.func.value, name)


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own_attribute(node, name)


def _comes_moved(o: Outline, class_: ast.ClassDef, name: str) -> bool:
    """Whether a class binds `self.name` to something that may be placed already: what a helper gives, a model of which the
    file moves or makes a copy elsewhere, or one that is made with a device. An argument is not, unless the file shows it.
    """
    for node in walk(class_):
        if isinstance(node, ast.Assign) and any(is_own_attribute(target, name) for target in node.targets):
            function = o.function(node)
            if function is None or not all(_is_unplaced(o, part) for part in _sources(o, class_, function, node.value)):
                return True
    return False


def _sources(o: Outline, class_: ast.ClassDef, function: ast.AST, value: ast.expr) -> Iterator[ast.expr]:
    """What an attribute is bound to: a value, or what the calls of the file hand to the constructor for it."""
    yield value
    names = parameter_names(function)
    if isinstance(value, ast.Name) and value.id in names:
        for site in o.flow.scan.calls.get(class_.name, ()):
            yield from given(site.call, value.id, names.index(value.id) - 1)


def _is_unplaced(o: Outline, node: ast.expr) -> bool:
    """Whether an expression is a new module, or a name that stands for an argument or a new module and never moves."""
    if isinstance(node, ast.Name):
        moved = (site.call for move in OFF_HOST for site in o.flow.scan.calls.get(move, ()))
        if any(isinstance(call.func, ast.Attribute) and _is_name(call.func.value, node.id) for call in moved):
            return False
        bound = (a for own in o.flow.scan.functions.values() for a in own.assigns if isinstance(a, ast.Assign))
        values = [a.value for a in bound if any(_is_name(target, node.id) for target in a.targets)]
        return all(isinstance(value, ast.Call) and _is_unplaced(o, value) for value in values)
    return is_construction(node) and not any(map(is_sign, walk(node)))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_moved_by_another_name(o: Outline, class_: ast.ClassDef, name: str) -> bool:
    """Whether something may move `self.name` that does not say so: a helper that gets it, a loop over it, a move of `self`,
    or code that moves a `name` of another object.
    """
    for move in OFF_HOST:
        for site in o.flow.scan.calls.get(move, ()):
            moved = site.call.func.value if isinstance(site.call.func, ast.Attribute) else None
            if isinstance(moved, ast.Name) and moved.id == "self" and o.nearest(site.call, ast.ClassDef) is class_:
                return True
            if isinstance(moved, ast.Attribute) and moved.attr == name and not is_self_attribute(moved):
                return True
    for node in walk(class_):
        if not is_own_attribute(node, name) or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        outer = o.parent.get(node)
        if isinstance(outer, ast.Call) and node is not outer.func:
            if last_name(outer.func) not in _ONLY_LOOK and not is_construction(outer):
                return True
        elif not isinstance(outer, (ast.Attribute, ast.Call, ast.FormattedValue, ast.Compare)):
            return True
    return False


def _runs_before(o: Outline, load: ast.Call, move: ast.Call) -> bool:
    """Whether the statement of a move comes later in a block that holds the other call, however deep."""
    statement = o.statement(move)
    if statement is None:
        return False
    block = o.block(statement)
    at = block.index(statement)
    return any(holds(earlier, load) for earlier in block[:at])
