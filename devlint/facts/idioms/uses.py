"""Whether the call of a module, or of one of its methods, meets tensors of the module.

A module without a parameter, a buffer or a part is nowhere: `.to(device)` moves nothing, and what it is given meets nothing.
So it is with a method that reads none of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from devlint.facts.text.classes import MODULE, ClassFacts
from devlint.facts.text.method_names import OFF_HOST_TENSOR, REGISTERS
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, is_self_attribute, is_static, last_name
from devlint.facts.text.signatures import Plain, default_of, parameter_of, positional_names
from devlint.facts.values import Value

DEPTH = 3  # methods that call each other
_ROOTS = MODULE | {"object"}
#: Kinds of attributes that a module does not move and that meet no tensor.
_PLAIN = frozenset({"number", "string", "bool", "none", "function", "class", "dtype", "namespace", "clock"})
_SCALARS = frozenset({"int", "float", "str", "bool", "dict", "list", "set", "tuple", "len"})
#: What a class that handles devices reads or calls.
_PLACING = OFF_HOST_TENSOR | {"device", "is_cuda", "new_tensor"}
#: How a condition asks what something is.
_ASKS = re.compile(r"isinstance|is_tensor|ndarray|type\(|is_numpy")
_OF_DATA = frozenset({"from_numpy", "tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor"})
_REGISTERS = REGISTERS | {
    "register_buffer", "register_parameter", "__dict__", "_modules", "_parameters", "_buffers", "__getattr__",
}  # fmt: skip


def family(class_: ClassFacts) -> list[ClassFacts] | None:
    """A class and all its bases; None where a base is not known."""
    found = [class_]
    if len([base for base in class_.bases if base not in _ROOTS]) != len(class_.local_bases):
        return None
    for base in class_.local_bases:
        above = family(base)
        if above is None:
            return None
        found += above
    return found


def holds_nothing(class_: ClassFacts) -> bool:
    """Whether objects of a module's class have no parameter, no buffer and no part that may have some."""
    whole = family(class_) if class_.is_module else None
    if whole is None:
        return False
    for each in whole:
        if not each.methods or each.node.decorator_list:
            return False
        for node in walk(each.node):
            if isinstance(node, ast.Attribute) and node.attr in _REGISTERS:
                return False
            if isinstance(node, ast.Name) and node.id in _REGISTERS:
                return False
        for method in each.methods.values():
            for node in walk(method):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    if not is_plain(each, method, node):
                        return False
    return True


def is_plain(class_: ClassFacts, method: Plain, target: ast.Attribute) -> bool:
    """Whether what a method binds to an attribute is no tensor and no module."""
    for node in walk(method):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and node.targets[0] is target:
            return is_plain_value(class_, method, node.value, target.attr)
        if isinstance(node, ast.AnnAssign) and node.target is target:
            return node.value is not None and is_plain_value(class_, method, node.value, target.attr)
    return False


def is_plain_value(class_: ClassFacts, method: Plain, node: ast.expr, name: str) -> bool:
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare, ast.Lambda)):
        return True
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return all(is_plain_value(class_, method, each, "") for each in node.elts)
    if isinstance(node, ast.Dict):
        return all(is_plain_value(class_, method, each, "") for each in node.values)
    if isinstance(node, ast.Name):
        given = parameter_of(method.args, node.id)
        if given is not None:
            said = given.annotation
            return (isinstance(said, ast.Name) and said.id in ("int", "float", "str", "bool")) or is_number(
                method, node.id
            )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SCALARS:
        return all(is_plain_value(class_, method, each, "") for each in node.args)
    known = class_.attribute(name) if name else None
    return known is not None and is_no_tensor(known)


def is_number(method: Plain, name: str) -> bool:
    """Whether the default of a parameter says that it is a number, a text or a flag."""
    default = default_of(method.args, name)
    return isinstance(default, ast.Constant) and default.value is not None


def is_no_tensor(value: Value) -> bool:
    """Whether a value is neither a tensor nor a module, nor holds one."""
    if value.kind in _PLAIN:
        return True
    if value.kind == "object":
        return value.type_name is not None and not value.elements
    return False


def reads_state(class_: ClassFacts, node: Plain, depth: int = 0) -> bool:
    """Whether a method reads what may be a tensor or a module of its object, or hands the object on."""
    if is_static(node):
        return False
    plain = positional_names(node.args)
    if not plain or depth > DEPTH or node.decorator_list:
        return True
    own = {id(n.value): n for n in walk(node) if isinstance(n, ast.Attribute)}
    for name in walk(node):
        if not isinstance(name, ast.Name) or name.id != plain[0]:
            continue
        read = own.get(id(name))
        if read is None:
            return True
        method = class_.method(read.attr)
        if method is not None:
            if reads_state(method[0], method[1], depth + 1):
                return True
            continue
        known = class_.attribute(read.attr)
        if known is None or not is_no_tensor(known):
            return True
    return False


def first_is_index(class_: ClassFacts) -> bool:
    """Whether the first input of a module's `forward` is only an index, which may stay on the CPU: `self.table[t.long()]`."""
    found = class_.method("forward")
    plain = positional_names(found[1].args) if found is not None else []
    return found is not None and len(plain) > 1 and only_indexes(class_, found[1], plain[1])


def only_indexes(class_: ClassFacts, node: Plain, name: str, depth: int = 0) -> bool:
    """Whether a name is read in brackets alone, or to make another name of it that is: `row = torch.round(t * self.steps)`."""
    loads = [n for n in walk(node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    slices = [n.slice for n in walk(node) if isinstance(n, ast.Subscript)]
    inside = {id(part) for each in slices if is_plain_index(each) for part in walk(each)}
    for load in loads:
        if id(load) in inside:
            continue
        made = [n for n in walk(node) if isinstance(n, ast.Assign) and any(part is load for part in walk(n.value))]
        target = made[0].targets[0] if made and len(made[0].targets) == 1 else None
        if not isinstance(target, ast.Name) or target.id == name or depth >= DEPTH:
            return False
        own = [n for n in walk(made[0].value) if is_self_attribute(n) and isinstance(n, ast.Attribute)]
        known = [class_.attribute(n.attr) for n in own]
        if any(value is not None and not is_no_tensor(value) and value.kind != "unknown" for value in known):
            return False
        if not only_indexes(class_, node, target.id, depth + 1):
            return False
    return bool(loads)


def is_plain_index(node: ast.expr) -> bool:
    """Whether nothing of the object's own is called, or read, to make an index: `t`, `t.long()`, `torch.round(t) + 1`."""
    return not any(is_self_attribute(part) for part in walk(node))


def all_make_their_input(classes: Iterable[ClassFacts | None]) -> bool:
    """Whether there are classes, all are known, and all are modules as `makes_its_input` says."""
    found = list(classes)
    return bool(found) and all(class_ is not None and makes_its_input(class_) for class_ in found)


def makes_its_input(class_: ClassFacts) -> bool:
    """Whether a module's `forward` makes its input of host data and computes with it where it is: what it gives is there.

    `x = torch.from_numpy(state); return self.fc(x)` in a class that moves nothing. Were the module elsewhere, this
    call would fail.
    """
    found = class_.method("forward") if class_.is_module else None
    if found is None or any(isinstance(n, ast.Attribute) and n.attr in _PLACING for n in walk(class_.node)):
        return False
    tests = (n for n in walk(found[1]) if isinstance(n, ast.If) and _ASKS.search(ast.unparse(n.test)) is not None)
    optional = {id(node) for test in tests for node in walk(test)}
    assigned = (n for n in walk(found[1]) if isinstance(n, ast.Assign) and id(n) not in optional)
    made = {name for node in assigned for name in made_here(node)}
    return any(
        isinstance(node, ast.Call)
        and not any(isinstance(part, ast.Name) and part.id in ("torch", "F") for part in chain(node.func))
        and any(isinstance(a, ast.Name) and a.id in made for a in node.args)
        for node in walk(found[1])
    )


def made_here(node: ast.Assign) -> Iterator[str]:
    """The names that an assignment gives a new tensor made of host data."""
    *_, root = chain(node.value)
    made = any(isinstance(part, ast.Call) and last_name(part.func) in _OF_DATA for part in chain(node.value))
    if made and isinstance(root, ast.Name) and root.id in ("torch", "th"):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
