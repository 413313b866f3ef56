"""Operands that must be tensors, and that nothing places, beside a tensor made on the CPU by the same function.

    def set_input(self, data):
        data.x = torch.cat([torch.ones(len(data.x), 1), data.x], dim=1)  # `torch.cat` takes tensors alone

    def has_edge(self, graph, nodes):
        found = torch.arange(nodes)[:, None] == graph.edges.unsqueeze(0)  # and so is what has `unsqueeze`

What comes from an argument, or from the object itself, may be where arguments are, like an argument. Not what a name, a call or
a value on the way says to be in host memory.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import computed_on_host
from devlint.facts.idioms.joined import is_blank
from devlint.facts.idioms.placed import goes_back
from devlint.facts.idioms.said_elsewhere import is_of_host
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.bindings import bindings
from devlint.facts.text.classes import lineage
from devlint.facts.text.collect import qualified
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import chain, is_self_attribute, last_name, stored_names
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.shown_tensors import (
    called,
    gives_number,
    handed_over,
    is_asked_for_parts,
    is_cast,
    stays_on_host,
    used_as_tensors,
)
from devlint.facts.text.signatures import parameter_names, parameter_of
from devlint.facts.text.signs import OF_HOST, moves
from devlint.facts.values import CPU, HOME, MADE_ON_CPU, MAYBE_CPU, TENSOR_KINDS, UNKNOWN, UNPLACED, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.defined import Function

#: Kinds of values from which nothing on an accelerator comes.
_HOST_KINDS = frozenset({"ndarray", "loader", "dataset", "sampler", "string"})
_HOST_CLASSES = frozenset({"ndarray", "NDArray", "DataFrame", "Dataset", "DataLoader", "Image"})
_PLAIN = frozenset({"int", "float", "str", "bool", "None", "Optional"})
_CONTAINERS = frozenset(
    {
        "tuple",
        "Tuple",
        "list",
        "List",
        "Sequence",
        "Iterable",
        "Union",
        "set",
        "Set",
        "dict",
        "Dict",
        "Mapping",
        "typing",
    }
)
#: How arguments are called whose items are in host memory.
_DATA_SET = re.compile(r"data_?(?:sets?|loaders?)\Z", re.IGNORECASE)
#: Names of calls that give what is in host memory.
_READS = re.compile(
    r"(?:^|_)(?:load|read|open|parse|collate|tokeni\w*|encode|decode|fetch|reset|step|next|map)(?:_|s?$)|numpy|asarray|loader",
    re.IGNORECASE,
)
#: Names of calls that make tensors.
_FACTORIES = frozenset(
    {
        "tensor", "Tensor", "FloatTensor", "LongTensor", "IntTensor", "zeros", "ones", "full", "empty", "arange", "eye",
        "linspace", "logspace", "rand", "randn", "randint", "randperm", "from_numpy", "as_tensor", "hann_window",
    }
)  # fmt: skip


#: Attributes of tensors that are no tensors.
_ASKED = frozenset({"shape", "ndim", "dtype", "device", "layout", "names", "itemsize", "nbytes"})
_JOINS = frozenset({"cat", "concat", "stack", "hstack", "vstack"})


def beside(machine: Machine, operands: Sequence[Operand]) -> Sequence[Operand]:
    """The operands of an operation, with a place for the tensors that nothing places, where one is new."""
    if not any(is_unknown_tensor(o.value) for o in operands) or not any(is_new(machine, o.value) for o in operands):
        return operands
    return [_placed(machine, operand) for operand in operands]


#: `torch.tensor(2)`, `torch.as_tensor(n)`: of data that is no list.
_MAYBE_0_DIM = re.compile(r"[\w.]*(?:tensor|asarray)\(\s*[^\[(\s]")


def _placed(machine: Machine, operand: Operand) -> Operand:
    is_unplaced = is_unknown_tensor(operand.value) and not is_computed_from_new(machine, operand.value)
    value = place_of(machine, operand.node) if is_unplaced else None
    return operand if value is None else replace(operand, value=replace(value, zero_dim=operand.value.zero_dim))


def result(operands: Sequence[Operand], value: Value) -> Value:
    """What an operation gives: nobody knows where, if nothing places one of its operands."""
    return replace(value, device=UNKNOWN, made=()) if any(o.value.is_unplaced for o in operands) else value


def is_unknown_tensor(value: Value) -> bool:
    """Whether a value is a tensor of which no place is known."""
    return value.kind in ("tensor", "tensors") and not value.device and not value.made and not value.type_name


def is_computed_from_new(machine: Machine, value: Value) -> bool:
    """Whether what is known of a tensor is that it is computed from one that was made on the CPU, and from something that
    may be a number: what `get_indices(n)` gives, which ends in `(torch.ones(n, n) - torch.eye(n)).nonzero()[:, 0] * n`.

    Not from one that may be 0-dim, `torch.tensor(2) * x`, which goes where the other is.
    """
    origin = value.because[0] if value.because else None
    if origin is None or origin.text != MADE_ON_CPU or origin.path is not None:
        return False
    made = machine.source.text[origin.span.start : origin.span.end]
    return _MAYBE_0_DIM.match(made) is None


def is_new(machine: Machine, value: Value) -> bool:
    """Whether a tensor of one dimension at least was made on the CPU by the function itself, or by its class."""
    function = machine.function
    if function is None or value.device not in (CPU, MAYBE_CPU) or value.zero_dim is not False:
        return False
    return is_made_in(machine, value, function.owner.node if function.owner is not None else function.node)


def is_made_in(machine: Machine, value: Value, node: ast.AST) -> bool:
    """Whether a tensor is made by a function, or a class, and nowhere else."""
    around = machine.span(node)
    return value.is_tensor and bool(value.made) and all(around.start <= c.span.start < around.end for c in value.made)


def operand(machine: Machine, node: ast.expr, value: Value, leaves: Iterator[ast.expr]) -> Value | None:
    """An operand of an operator, if it is a tensor: by what gives it, or as the function uses what it is computed from."""
    if value.is_tensor:
        return place_of(machine, node)
    own = _scan(machine)
    if own is None or not (is_cast(node) or any(is_used_as_tensor(own, leaf) for leaf in leaves)):
        return None
    return place_of(machine, node)


def is_used_as_tensor(own: FunctionScan, leaf: ast.expr) -> bool:
    """Whether a function uses a name or attribute as a tensor, and binds the name to no number."""
    if ast.unparse(leaf) not in used_as_tensors(own):
        return False
    return not isinstance(leaf, ast.Name) or not any(map(gives_number, bindings(own).get(leaf.id, ())))


def parts(machine: Machine, node: ast.expr, given: Value) -> Iterator[Operand]:
    """The items of a list or tuple that is joined with new tensors, of which nothing else is known."""
    nodes = list(items_of(node))
    if isinstance(given.elements, tuple) and len(given.elements) == len(nodes):
        for item, value in zip(nodes, given.elements, strict=True):
            place = place_of(machine, item) if value.kind == "unknown" and is_blank(value) else None
            if place is not None:
                yield machine.operand(item, place)


def items_of(node: ast.expr) -> Iterator[ast.expr]:
    """The items that a list or tuple, or a sum of them, is written with: `[x] + [y, z]`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from items_of(node.left)
        yield from items_of(node.right)
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from node.elts


def place_of(machine: Machine, node: ast.expr) -> Value | None:
    """The place of an operand that must be a tensor, and of which nothing is known: that of what it comes from."""
    if is_asked(node):
        return None
    own, function = _scan(machine), machine.function
    if own is None or function is None or not machine.assume or machine.host or machine.in_init:
        return None
    if knows_other_tensors(machine.imports.names) or function.name.rsplit(".", 1)[-1].startswith("test"):
        return None
    if not _FACTORIES.isdisjoint(called(node)):
        return None  # it is new itself, on some path at least
    if stays_on_host(own) or is_read_by_numpy(machine, own, node):
        return None
    root = source_of(machine, own, node)
    if root is None or not is_plausible(machine, own, function, root):
        return None
    origin = Origin(machine.span(node), f"{UNPLACED} this tensor is: it comes from `{root}`")
    if root != "self":
        machine.assumed[origin.span] = (function, root)
    return Value("tensor", HOME, None, because=(origin,))


def is_asked(node: ast.expr) -> bool:
    """Whether an expression asks something for what is no tensor: `x.numel()`, `x.float().shape[0]`, `x.size(0)`."""
    for part in chain(node):
        if isinstance(part, ast.Attribute) and part.attr in _ASKED:
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            record = knowledge.method("Tensor", part.func.attr)
            if record is not None and record.result in ("number", "bool", "size"):
                return True
    return False


def is_read_by_numpy(machine: Machine, own: FunctionScan, node: ast.expr) -> bool:
    """Whether a function hands the same expression to a function of numpy."""
    names = machine.imports.names
    given = (texts for name, texts in handed_over(own).items() if names.get(name, "").partition(".")[0] == "numpy")
    text = ast.unparse(node)
    return any(text in texts for texts in given)


def is_plausible(machine: Machine, own: FunctionScan, function: Function, root: str) -> bool:
    """Whether the arguments of a function, or the object itself, may hold what is on an accelerator."""
    evidence = machine.evidence.get(id(own.node))
    if root == "self" or evidence is None:
        return machine.callers.is_plausible(function, False)
    owner = function.owner
    if owner is not None and not owner.is_module and function.name.rsplit(".", 1)[-1] == "__call__":
        return False  # objects that are called like this transform what a data set gives, for the most part
    if owner is not None and "forward" in owner.methods:
        return True  # its base is of another file
    annotated = root in evidence.annotated or root in evidence.several or is_module(machine, root)
    return machine.callers.is_plausible(function, annotated)


def is_module(machine: Machine, name: str) -> bool:
    """Whether a parameter is a module of torch by its annotation: `layer: nn.LSTM`."""
    note = annotation(machine, name)
    return note is not None and (qualified(note, machine.imports) or "").startswith("torch.nn.")


def _scan(machine: Machine) -> FunctionScan | None:
    return machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None


def source_of(machine: Machine, own: FunctionScan, node: ast.expr) -> str | None:
    """The parameter that a value is computed from, or else `self`; None where it is neither, or something is of the host."""
    parameters, bound = parameter_names(own.node), bindings(own)
    *_, start = chain(node)
    if isinstance(start, ast.Name) and any(is_made_new(v) and not holds(v, node) for v in given_to(own, start.id)):
        return None  # it is new itself, on some path at least
    found: str | None = None
    seen: set[str] = set()
    pending = [node]
    for each in pending:  # which grows
        if is_of_host(each) or is_opaque(machine, each) or brings_to_host(each) or reads_for_host(machine, each):
            return None
        if any(is_on_host(machine, name) for name in outside_calls(each)) or is_given_new(machine, each):
            return None
        if computed_on_host.reads_one(machine, each):
            return None
        for name in names_in(machine, each):
            if name in seen:
                continue
            seen.add(name)
            if OF_HOST.search(name) is not None or _DATA_SET.search(name) is not None or is_host_value(machine, name):
                return None
            if name in ("self", "cls"):
                if not reads_bound(machine, each):  # of what the class binds it says itself where that is
                    found = found or "self"
            elif name in parameters:
                said = annotated(machine, own, name)
                if said == "host":
                    return None
                found = name if found in (None, "self") and said is None else found
            pending += bound.get(name, ())
    return found


def given_to(own: FunctionScan, name: str) -> Iterator[ast.expr]:
    """What the assignments of a function give a name, or take apart for it: not what they write into parts of it."""
    for each in own.assigns:
        if isinstance(each, ast.Assign) and any(name in stored_names(target) for target in each.targets):
            yield each.value
        elif not isinstance(each, ast.Assign) and name in stored_names(each.target):
            yield each.iter


def is_made_new(node: ast.expr) -> bool:
    """Whether an expression makes a tensor of nothing but numbers, in one of its arms at least: `torch.ones(n).long()`."""
    if isinstance(node, ast.IfExp):
        return is_made_new(node.body) or is_made_new(node.orelse)
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts) and all(map(is_made_new, node.elts))
    if isinstance(node, ast.ListComp):
        return is_made_new(node.elt)
    if isinstance(node, ast.BinOp):
        return is_made_new(node.left) and (is_made_new(node.right) or isinstance(node.right, (ast.Name, ast.Constant)))
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name in _FACTORIES:
        return True
    if name in _JOINS:
        return bool(node.args) and is_made_new(node.args[0])
    return isinstance(node.func, ast.Attribute) and is_made_new(node.func.value)


def brings_to_host(node: ast.expr) -> bool:
    """Whether some part of an expression brings a tensor to the CPU, or says by its name that it is there."""
    for part in walk(node):
        if isinstance(part, ast.Call) and (last_name(part.func) in TO_HOST or goes_back(part)):
            return True
        if isinstance(part, ast.Attribute) and (part.attr == "cpu" or OF_HOST.search(part.attr) is not None):
            return True
    return False


def reads_for_host(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression calls a function of the file that brings tensors to the CPU: what it gives may stay there."""
    for call in (n for n in walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)):
        assert isinstance(call.func, ast.Name)
        function = machine.functions.get(call.func.id)
        if function is not None and function is not machine.function and not isinstance(function.node, ast.Lambda):
            if any(isinstance(n, ast.Call) and last_name(n.func) == "numpy" for n in walk(function.node)):
                return True
    return False


def reads_bound(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression reads an attribute of the object, and no more of it, that its class binds."""
    outer = {id(n.value) for n in walk(node) if isinstance(n, ast.Attribute)}
    read = {n.attr for n in walk(node) if isinstance(n, ast.Attribute) and is_self_attribute(n) and id(n) not in outer}
    if not read or machine.owner is None:
        return False
    methods = (method for class_ in lineage(machine.owner) for method in class_.methods.values())
    scans = (machine.scan.functions.get(id(method)) for method in methods)
    return any(is_self_attribute(s) and s.attr in read for scan in scans if scan is not None for s in scan.stores)


def is_opaque(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression makes an object, reads something, or hands on what it makes: that may be in host memory."""
    for call in (n for n in walk(node) if isinstance(n, ast.Call)):
        name = last_name(call.func)
        if _READS.search(name) is not None:
            return True
        if any(isinstance(a, ast.Call) and last_name(a.func) in _FACTORIES for a in call.args):
            return True
        if name[:1].isupper() and not name.isupper():
            if not (qualified(call.func, machine.imports) or "").startswith("torch."):
                return True
    return False


def outside_calls(node: ast.expr) -> Iterator[str]:
    """The names whose values an expression may be, or computes with by operators: not what it hands to calls."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.Tuple, ast.List)):
            pending += ast.iter_child_nodes(part)
        elif isinstance(part, ast.Subscript):
            pending.append(part.value)


def is_on_host(machine: Machine, name: str) -> bool:
    """Whether a name stands for a tensor of the CPU, on some path at least."""
    value = machine.lookup(name)
    return value is not None and value.kind in TENSOR_KINDS and not CPU.isdisjoint(value.device)


def is_given_new(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression calls a method of the class, which moves nothing, with a tensor of the CPU: what it gives is there,
    or it fails itself. Not with one that has no dimensions, or that the method uses as an index, which may stay there."""
    for call in (n for n in walk(node) if isinstance(n, ast.Call) and is_self_attribute(n.func)):
        given = [
            (at, a.id) for at, a in enumerate(call.args) if isinstance(a, ast.Name) and has_items_on_host(machine, a.id)
        ]
        found = machine.owner.method(last_name(call.func)) if machine.owner is not None and given else None
        if found is None or any(isinstance(n, ast.Call) and moves(n) for n in walk(found[1])):
            continue
        arguments = found[1].args
        names = [p.arg for p in (*arguments.posonlyargs, *arguments.args)]
        first = 0 if any(last_name(d) == "staticmethod" for d in found[1].decorator_list) else 1
        indices = {
            n.id
            for subscript in walk(found[1])
            if isinstance(subscript, ast.Subscript)
            for n in walk(subscript.slice)
            if isinstance(n, ast.Name)
        }
        if any(at + first >= len(names) or names[at + first] not in indices for at, _ in given):
            return True
    return False


def has_items_on_host(machine: Machine, name: str) -> bool:
    """Whether a name stands for a tensor of the CPU that may have dimensions."""
    value = machine.lookup(name)
    return is_on_host(machine, name) and value is not None and value.zero_dim is not True


def is_host_value(machine: Machine, name: str) -> bool:
    """Whether what a name stands for is in host memory, but for what was made there and may be told a device."""
    value = machine.lookup(name)
    if value is None:
        return False
    return value.kind in _HOST_KINDS or (value.kind in TENSOR_KINDS and value.device == CPU and not value.made)


def names_in(machine: Machine, node: ast.expr) -> Iterator[str]:
    """The names in an expression, but for those of an index, of what a function is told by name, and of what an attribute that
    the class binds is given: of that the class says itself what it gives."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Subscript):
            pending.append(part.value)
        elif isinstance(part, ast.Call):
            pending.append(part.func)
            if not reads_bound(machine, part.func):
                pending += part.args
        else:
            pending += ast.iter_child_nodes(part)


def annotation(machine: Machine, name: str) -> ast.expr | None:
    """The annotation of a parameter of the function that is run."""
    parameter = parameter_of(machine.function.node.args, name) if machine.function is not None else None
    return parameter.annotation if parameter is not None else None


def annotated(machine: Machine, own: FunctionScan, name: str) -> str | None:
    """What a parameter is by its annotation, or as numpy or a condition takes it: "host", "number", or None."""
    evidence, known = machine.evidence.get(id(own.node)), machine.lookup(name)
    if evidence is not None and name in evidence.annotated and known is not None and not known.device:
        return "host"  # a condition says that it is no tensor of torch's
    if evidence is None or name in evidence.arrays or (name in evidence.asked and not is_asked_for_parts(own, name)):
        return "host"
    note = annotation(machine, name)
    if note is None or name in evidence.annotated or name in evidence.several or name in evidence.maybe:
        return None
    words = {last_name(n) for n in walk(note) if isinstance(n, (ast.Name, ast.Attribute))}
    if not words.isdisjoint(_HOST_CLASSES):
        return "host"
    return "number" if words - _CONTAINERS and words - _CONTAINERS <= _PLAIN else None
