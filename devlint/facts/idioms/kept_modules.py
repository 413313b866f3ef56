"""Modules that a plain object makes for itself, never moves, and calls with what it puts on its device.

    class Agent:
        def __init__(self, device):
            self.device = device
            self.net = Net()                           # stays on the CPU

        def act(self, state):
            return self.net(state.to(self.device))

Who holds the object may move its parts, so that nothing is said where the file does more with attributes of that name than
to bind them to what it makes right there, to call them, to switch their mode and to hand their parameters to a call, or where
it reads all attributes of an object at once. Of the project's other files, those of the bases among them, an objection asks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms.never_moved import is_moved, moves_itself
from devlint.facts.idioms.unseen_modules import is_network
from devlint.facts.text.classes import lineage
from devlint.facts.text.method_names import OFF_HOST, OFF_HOST_MODULE
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.results import parents
from devlint.facts.values import CPU, HOME, Value, may_be_accelerator
from devlint.knowledge import library_modules

if TYPE_CHECKING:
    from devlint.facts.interpreter.module_calls import ModuleCalls

#: What is read from a module that leaves it where it is, besides its own methods; its parameters only where they are
#: given to a call as they are.
_READ = frozenset(
    {"train", "eval", "zero_grad", "state_dict", "load_state_dict", "forward", "requires_grad_", "training"}
)
_ALL_AT_ONCE = re.compile(r"\bvars\(\s*self|\b__dict__\b|\bgetattr\(\s*self\b")
#: Names of sizes and other numbers that a network is made of.
_SIZE = re.compile(
    r"^n(um)?_|_n$|num|dim|size|width|height|channel|hidden|class|component|layer|feature|heads|depth|count|vocab"
)
#: What is read from layers of torch, and from metrics, that leaves them where they are.
_OF_LAYERS = frozenset(
    {"weight", "bias", "in_features", "out_features", "in_channels", "out_channels", "update", "compute", "reset"}
)
_PLACED = re.compile(r"device|cuda|gpu|\.to\(")
#: What has new modules made elsewhere than on the CPU.
_DEFAULT = re.compile(r"set_default_(device|tensor)|with torch\.device|init_empty_weights")
#: What may be called on what another method gives, to move it.
_GO_ON = OFF_HOST_MODULE | {"train", "eval", "half", "float", "requires_grad_"}
#: What is read from modules and from nothing else.
_SHOWS_MODULE = frozenset({"parameters", "state_dict", "load_state_dict", "train", "eval", "zero_grad"})
Around = tuple[ast.Attribute | ast.Name, ast.AST | None, ast.AST | None, ast.AST | None]


def note(machine: ModuleCalls, node: ast.Call, module: Operand, given: list[Operand], method: str = "forward") -> None:
    """A plain object calls a module that it keeps, or a method of it, on what it moved."""
    name, owner, value = module.node, machine.owner, module.value
    if not isinstance(name, ast.Attribute) or not is_self_attribute(name) or owner is None or machine.in_init:
        return
    if owner.is_module or owner.abroad or value.device or value.ident is None or value.shared or value.moved:
        return
    moved = next((o for o in given if o.value.moved and may_be_accelerator(o.value.device)), None)
    class_ = machine.classes.get(value.type_name or "")
    if moved is None or machine.host:
        return
    if class_ is None:
        if method != "forward" or not is_layer(machine, value):
            return
    elif any(moves_itself(each) for each in lineage(class_)) or machine.moves_inputs(class_, method):
        return
    if reads_all_at_once(machine.source.text) or is_moved(machine, name.attr):
        return
    read = _READ.union(*(each.methods for each in lineage(class_))) if class_ is not None else _READ | _OF_LAYERS
    if all(is_plain(read, *use) for use in machine.attribute_uses.get(name.attr, ())):
        machine.meet(node, [replace(module, value=replace(value, device=CPU)), moved], "module", "module", "exact")


def is_layer(machine: ModuleCalls, module: Value) -> bool:
    """Whether a module is a layer of torch with parameters, a container of such, or one of another library that holds tensors,
    and is told no device where it is made."""
    assert module.ident is not None
    told = library_modules.holds_tensors(module.type_name or "")
    if told is not None:
        text = machine.source.text[module.ident.start : module.ident.end]
        return _PLACED.search(text) is None and not any(f"{name}=" in text for name in told)
    kinds = [module, *(part for part in module.parts if part.kind == "module")]
    classes = [knowledge.cls(part.type_name or "") for part in kinds]
    holds = any(c is not None and c.takes_device and "Norm" not in c.qualname for c in classes)
    span = module.ident
    return holds and _PLACED.search(machine.source.text[span.start : span.end]) is None


def note_unread(machine: ModuleCalls, node: ast.Call, given: list[Operand]) -> None:
    """A plain object calls a module of a class that cannot be read on what it moved: `self.model = GMMModel(3)`.

    Such a class shows by its name. What it is made of may tell it a device, so that only sizes count. In an object
    that is a module itself only what the same method made is certain to be where it was made.
    """
    name, owner = node.func, machine.owner
    if not isinstance(name, ast.Attribute) or not is_self_attribute(name) or owner is None or machine.in_init:
        return
    if owner.abroad or machine.host or machine.function is None or machine.scan.tree is None:
        return
    moved = next((o for o in given if o.value.moved and may_be_accelerator(o.value.device)), None)
    if moved is None or moved.value.device == HOME:
        return
    known = machine.never_moved_parts
    if name.attr not in known:
        known[name.attr] = made_and_left(machine, name.attr)
    made, around = known[name.attr], machine.span(machine.function.node)
    if owner.is_module and not all(around.start <= machine.span(each).start < around.end for each in made):
        return  # who moved the object moved what it had
    if made:
        because = (machine.origin(made[0], "created here, and never moved in this file"),)
        module = machine.operand(name, Value("module", CPU, because=because))
        machine.meet(node, [module, moved], "module", "module", "exact")


def note_unread_name(machine: ModuleCalls, node: ast.Call, given: list[Operand]) -> None:
    """A module that cannot be read is called by its name on what was moved: `teacher = build(args)`, `teacher(x.to(device))`.

    The file binds the name once, to what a call makes, and does no more with it than with such an attribute. That the call
    leaves a model on the CPU is shown where the file moves another one that it made, or by a class like a network.
    """
    name = node.func
    if not isinstance(name, ast.Name) or machine.host or machine.in_init or machine.scan.tree is None:
        return
    moved = next((o for o in given if o.value.moved and may_be_accelerator(o.value.device)), None)
    if moved is None or moved.value.device == HOME or is_moved(machine, name.id):
        return
    known = machine.never_moved_parts
    key = f"{name.id}()"
    if key not in known:
        known[key] = made_and_named(machine, name.id)
    if known[key]:
        because = (machine.origin(known[key][0], "created here, and never moved in this file"),)
        module = machine.operand(name, Value("module", CPU, because=because))
        machine.meet(node, [module, moved], "module", "module", "exact")


def made_and_named(machine: ModuleCalls, name: str) -> list[ast.expr]:
    """The call that makes what a name of the file holds: a module that cannot be read and that nothing moves. Else none."""
    if _DEFAULT.search(machine.source.text) is not None:
        return []
    around = machine.name_uses.get(name, ())
    stores = [outer for use, outer, *_ in around if not isinstance(use.ctx, ast.Load)]
    made = stores[0] if len(stores) == 1 else None
    if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call) or len(made.targets) != 1:
        return []
    shown = any(isinstance(outer, ast.Attribute) and outer.attr in _SHOWS_MODULE for _, outer, *_ in around)
    call = made.value
    named = is_network(machine, call)  # type: ignore[arg-type]
    if not shown or _PLACED.search(machine.text(call)) is not None:
        return []
    if not (has_moved_sister(machine, call) or ((named or is_unread(machine, call)) and is_made_of_sizes(call))):
        return []
    if not all(is_plain(_READ, *use) for use in around):
        return []
    given = any(isinstance(node, ast.arg) and node.arg == name for node in walk(machine.scan.tree))  # type: ignore[arg-type]
    return [] if given else [call]


def has_moved_sister(machine: ModuleCalls, made: ast.Call) -> bool:
    """Whether the file moves what another call of the same function gives, right there: `student = build(name).to(device)`."""
    text = ast.dump(made.func)
    if not isinstance(made.func, (ast.Name, ast.Attribute)) or last_name(made.func) in machine.functions:
        return False
    sites = (site.call.func for name in OFF_HOST for site in machine.scan.calls.get(name, ()))
    receivers = (f.value for f in sites if isinstance(f, ast.Attribute))
    return any(isinstance(r, ast.Call) and r is not made and ast.dump(r.func) == text for r in receivers)


def made_and_left(machine: ModuleCalls, name: str) -> list[ast.expr]:
    """The calls that make what an attribute holds: modules that cannot be read, made of sizes, moved nowhere. Else none."""
    around = machine.attribute_uses.get(name, ())
    stores = (outer for use, outer, *_ in around if isinstance(use.ctx, ast.Store))
    made = [outer.value for outer in stores if isinstance(outer, ast.Assign)]
    shown = any(isinstance(outer, ast.Attribute) and outer.attr in _SHOWS_MODULE for _, outer, *_ in around)
    for each in made:
        named = is_network(machine, each) or (shown and is_unread(machine, each))  # type: ignore[arg-type]
        if not named or not (is_made_of_sizes(each) or has_moved_twin(machine, each)):
            return []
    if reads_all_at_once(machine.source.text) or is_moved(machine, name) or hands_on_itself(machine):
        return []
    return made if all(is_plain(_READ, *use) for use in around) else []


def is_unread(machine: ModuleCalls, node: ast.expr) -> bool:
    """Whether an expression makes an object of an imported class that cannot be read."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return False
    qualname = machine.qualify(node.func)
    if qualname is None or "." not in qualname or not last_name(node.func)[:1].isupper():
        return False
    return knowledge.cls(qualname) is None and machine.find(qualname) is None  # type: ignore[attr-defined]


def has_moved_twin(machine: ModuleCalls, node: ast.expr) -> bool:
    """Whether the file moves another object of the same class and arguments right where it makes it: `QNet(n).to(device)`."""
    assert isinstance(node, ast.Call)
    text = ast.dump(node)
    if _PLACED.search(machine.text(node)) is not None:
        return False
    sites = (site.call.func for name in OFF_HOST for site in machine.scan.calls.get(name, ()))
    return any(isinstance(f, ast.Attribute) and ast.dump(f.value) == text for f in sites)


def is_made_of_sizes(node: ast.expr) -> bool:
    """Whether a call is given nothing but numbers, texts and sizes: a device, a tensor or a module may decide where it is."""
    if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
        return False
    return all(map(is_size, (*node.args, *(k.value for k in node.keywords))))


def is_size(node: ast.expr) -> bool:
    """Whether an expression is a constant, or reads like a size: `self.n_components`, `x.shape[-1]`, `len(classes)`."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(is_size, node.elts))
    if isinstance(node, ast.BinOp):
        return is_size(node.left) and is_size(node.right)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("len", "size", "int")
    return isinstance(node, (ast.Name, ast.Attribute)) and _SIZE.search(last_name(node)) is not None


def hands_on_itself(machine: ModuleCalls) -> bool:
    """Whether some code of the file hands `self` to a call, which may move all that the object has."""
    return any(
        isinstance(argument, ast.Name) and argument.id == "self"
        for name, sites in machine.scan.calls.items()
        if name not in ("super", "isinstance", "hasattr", "__init__")
        for site in sites
        for argument in site.call.args
    )


def reads_all_at_once(text: str) -> bool:
    """Whether a file reads all attributes of an object, or one by a computed name."""
    return _ALL_AT_ONCE.search(text) is not None


def uses(tree: ast.Module, of: type[ast.Attribute] | type[ast.Name] = ast.Attribute) -> dict[str, list[Around]]:
    """The attributes of a file by their names, or its names, each with the three nodes around it, from the inside out."""
    found: dict[str, list[Around]] = {}
    around = parents(tree)
    for node in around:
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node, of):
            outer = around.get(node)
            second = around.get(outer) if outer is not None else None
            third = around.get(second) if second is not None else None
            found.setdefault(last_name(node), []).append((node, outer, second, third))
    return found


def is_plain(
    read: Collection[str],
    use: ast.Attribute | ast.Name,
    outer: ast.AST | None,
    second: ast.AST | None,
    third: ast.AST | None,
) -> bool:
    """Whether a use of a module leaves it where it is: it is bound, called, or one of `read` is read from it."""
    if isinstance(use.ctx, ast.Store):
        return isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.value, ast.Call)
    if isinstance(outer, ast.Call):
        return outer.func is use
    if not isinstance(outer, ast.Attribute):
        return False
    if outer.attr == "parameters":
        return isinstance(second, ast.Call) and second.func is outer and isinstance(third, (ast.Call, ast.keyword))
    if isinstance(second, ast.Call) and isinstance(third, ast.Attribute) and third.attr in _GO_ON:
        return False  # `net.eval().to(device)`
    assigns = isinstance(second, ast.Call) and any(k.arg in ("assign", None) for k in second.keywords)
    return outer.attr in read and not assigns
