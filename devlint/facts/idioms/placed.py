"""Models that objects of plain classes keep and put on a device: known in every method, whichever of them made the model.

    def fit(self, x):
        self.model = Net(self.width)
        self.model.to(self.device)

    def predict(self, x):
        return self.model(torch.tensor(x))  # on the CPU, and the model is on `self.device`

The text of the class decides. A model counts when each method that binds it also moves it, whatever happens there, and no
code of the class takes it back to the CPU.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.idioms.devices import parse_device
from devlint.facts.text.classes import lineage
from devlint.facts.text.method_names import OFF_HOST, OUT_OF_TORCH
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import chain, is_self_attribute, last_name, own_bindings
from devlint.facts.text.signs import moves
from devlint.facts.values import ACCELERATORS, CPU, Device, Value, may_be_accelerator, on, symbol
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts

_NAMES_DEVICES = re.compile(rf"\.({'|'.join(sorted(OFF_HOST))})\(|device|cuda|gpu|accelerat", re.IGNORECASE)
#: What makes tensors of numbers and arrays: in host memory, where no device is said.
_FROM_DATA = frozenset({"tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor", "LongTensor"})
_OF_MODULES = frozenset(
    {"eval", "train", "parameters", "state_dict", "load_state_dict", "named_parameters", "forward", "generate"}
)


def placed_models(machine: Machine, class_: ClassFacts) -> Iterator[tuple[str, Value]]:
    """The attributes of a plain class that are models which its methods put on a device, with what is known of each."""
    if OFF_HOST.isdisjoint(machine.scan.calls):
        return
    found: dict[str, ast.Call] = {}
    left: set[str] = set()  # bound without a move, or moved back
    used = {*used_as_modules(class_), *(n for n, value in class_.attributes.items() if value.kind == "module")}
    for method in class_.methods.values() if used else ():
        moved: dict[str, int] = {}  # the row of the last move
        for statement in unconditional(method.body):
            for name, call in placements(statement):
                moved[name] = statement.lineno
                found.setdefault(name, call)
        for node in walk(method):
            if isinstance(node, ast.Assign):
                empty = isinstance(node.value, ast.Constant) and node.value.value is None
                names = {own_name(part) for target in node.targets for part in walk(target)} if not empty else set()
                left |= {name for name in names if moved.get(name, 0) < node.lineno}
            elif isinstance(node, ast.Call) and (goes_back(node) or last_name(node.func).endswith("DataParallel")):
                left |= {own_name(part) for part in (*chain(node.func), *node.args)}
    for name, call in found.items():
        known = class_.attributes.get(name)
        if name not in used or name in left or (known is not None and known.kind not in ("none", "unknown", "module")):
            continue
        device = target_of(machine, class_, call)
        if (known is None or not known.device) and may_be_accelerator(device):
            because = (Origin(machine.span(call), f"moved to `{machine.text(argument(call) or call)}` here"),)
            yield name, Value("module", device, because=because, moved=True)


def is_left_on_host(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression is of `self.net`, which an object of a plain class makes, and its class moves nothing.

    `self.net = Net(width)` in a class without a move, or a device, in its text; or `self.rows = rows` after
    `rows = [torch.as_tensor(row) for row in rows]`.
    """
    class_ = machine.owner
    *parts, root = chain(node)
    if class_ is None or class_.is_module or class_.on_host or getattr(root, "id", "") != "self" or not parts:
        return False
    if _NAMES_DEVICES.search(machine.text(class_.node)) is not None:
        return False
    name = own_name(parts[-1])
    stored = [value for each in lineage(class_) for value in stored_in(each, name)]
    return bool(stored) and all(isinstance(v, ast.Call) or is_name_of_new(class_, name, v) for v in stored)


def is_name_of_new(class_: ClassFacts, name: str, value: ast.expr | None) -> bool:
    """Whether what is stored in `self.name` is a name that its method binds to tensors made there, or to those that another
    object of the class has: `rows = rows.rows`."""
    if not isinstance(value, ast.Name):
        return False
    method = next((m for each in lineage(class_) for m in each.methods.values() if value in walk(m)), None)
    every = assignments(method) if method is not None else ()
    given = [node.value for node in every if any(getattr(target, "id", "") == value.id for target in node.targets)]
    copies = [node for node in given if isinstance(node, ast.Attribute) and node.attr == name]
    return len(given) > len(copies) and all(node in copies or is_new_on_host(node) for node in given)


def is_new_on_host(node: ast.expr) -> bool:
    """Whether an expression makes a tensor of what it is given, or a list of such tensors."""
    if isinstance(node, ast.ListComp):
        node = node.elt
    return isinstance(node, ast.Call) and last_name(node.func) in _FROM_DATA


def classes_of(machine: Machine, node: ast.expr) -> list[ast.expr]:
    """What makes the objects that `self.net` may hold: the classes that the class's methods call, or the one that the
    function under analysis asserts it to be of.
    """
    function, name = machine.function, own_name(node)
    if function is None or machine.owner is None or not name:
        return []
    for each in statements(function.node):
        if not isinstance(each, ast.Assert) or each.lineno > node.lineno or not isinstance(each.test, ast.Call):
            continue
        asked = each.test.args
        if last_name(each.test.func) == "isinstance" and len(asked) == 2 and own_name(asked[0]) == name:
            return asked[1:]
    stored = [value for each in lineage(machine.owner) for value in stored_in(each, name)]
    known = [value.func if isinstance(value, ast.Call) else value for value in stored if value is not None]
    return known if len(known) == len(stored) else []


def stored_in(class_: ClassFacts, name: str) -> Iterator[ast.expr | None]:
    """What the methods of a class store in `self.name`, the constant None left out; None for what is no plain assignment."""
    for method in class_.methods.values():
        for value in own_bindings(method).get(name, ()):
            if not (isinstance(value, ast.Constant) and value.value is None):
                yield value


@lru_cache(512)
def assignments(method: ast.AST) -> tuple[ast.Assign, ...]:
    """The assignments in a method, those of functions inside it included."""
    return tuple(node for node in statements(method) if isinstance(node, ast.Assign))


def used_as_modules(class_: ClassFacts) -> Iterator[str]:
    """The attributes that the methods of a class call, or ask for what only a module has."""
    for method in class_.methods.values():
        for node in walk(method):
            if isinstance(node, ast.Call):
                function = node.func
                if isinstance(function, ast.Attribute) and function.attr in _OF_MODULES:
                    yield own_name(function.value)
                else:
                    yield own_name(function)


def unconditional(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function that run whenever it runs to its end."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from unconditional(statement.body)
        else:
            yield statement


def placements(statement: ast.stmt) -> Iterator[tuple[str, ast.Call]]:
    """The attributes that a statement puts on a device: `self.net.to(device)`, `self.net = Net().to(device)`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and moves(statement.value):
        parts = list(chain(statement.value.func))
        yield from ((own_name(part), statement.value) for part in parts[1:2])
    elif isinstance(statement, ast.Assign):
        call = next((c for c in chain(statement.value) if isinstance(c, ast.Call) and moves(c)), None)
        if call is not None:
            yield from ((own_name(target), call) for target in statement.targets)


def goes_back(call: ast.Call) -> bool:
    """Whether a call takes something to the CPU: `self.net.cpu()`, `self.net.to("cpu")`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("cpu", "to"):
        return False
    given = argument(call)
    return call.func.attr == "cpu" or (given is not None and is_cpu(given))


def is_cpu(node: ast.expr) -> bool:
    """Whether an expression is `"cpu"` or `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and last_name(node.func) == "device":
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "type")]
        node = given[0] if given else node
    return isinstance(node, ast.Constant) and node.value == "cpu"


@lru_cache(8)
def sent_back(function: ast.AST) -> frozenset[str]:
    """The names and attributes that statements of a function take to the CPU, with what is in them: `layer.cpu()`."""
    found: set[str] = set()
    for node in walk(function):
        if isinstance(node, (ast.Expr, ast.Assign)):
            parts = list(chain(node.value))
            read = any(isinstance(p, ast.Attribute) and p.attr in OUT_OF_TORCH for p in parts)
            moves = [p.func for p in parts if isinstance(p, ast.Call) and goes_back(p)] if not read else []
            found |= {ast.unparse(m.value) for m in moves if isinstance(m, ast.Attribute)}
    return frozenset(found)


def argument(call: ast.Call) -> ast.expr | None:
    """What a move is given as its device."""
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)


def target_of(machine: Machine, class_: ClassFacts, call: ast.Call) -> Device:
    """Where a call moves things to."""
    return device_given(machine, class_, argument(call), accelerator_of(call))


def accelerator_of(call: ast.Call) -> str:
    """The accelerator that a move means by an index, or where it is given nothing: `x.xpu()`, `x.cuda(1)`, `x.to(1)`."""
    name = last_name(call.func)
    return name if name in ACCELERATORS else "cuda"


def device_given(machine: Machine, class_: ClassFacts, given: ast.expr | None, type: str = "cuda") -> Device:
    """The device that an expression in a method of a class names: `self.device`, `"cuda"`.

    `type`: the accelerator that an index means, and None, which stands for `x.cuda()`.
    """
    if given is None:
        return on(type)
    if isinstance(given, ast.Constant):
        return parse_device(given.value) if isinstance(given.value, str) else on(type)
    kept = class_.attributes.get(own_name(given))
    if kept is not None and kept.device == CPU:
        return CPU
    known = machine.globals.get(given.id) if isinstance(given, ast.Name) else None
    return known.device if known is not None and known.device else symbol(machine.text(given), 0)


def own_name(node: ast.AST) -> str:
    """`name` for `self.name`; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) and is_self_attribute(node) else ""
