"""Branches: those that the project never takes, and those that are for the host alone.

An option that no call of a helper turns on, `if x.device.type == "cpu":`, and the arm where a function was given an array.
Flags of objects are those of `flags`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import Meet
from devlint.facts.idioms.placed import is_cpu
from devlint.facts.text.bindings import bindings
from devlint.facts.text.callers import Callers
from devlint.facts.text.defined import Function
from devlint.facts.text.factory_names import OF_SIZES
from devlint.facts.text.method_names import SHAPES
from devlint.facts.text.nodes import holds, statements, walk
from devlint.facts.text.references import asks_none, chain, given, is_private
from devlint.facts.text.scan import Site
from devlint.facts.text.signatures import default_of, parameter_names, parameter_of
from devlint.facts.values import CPU, HOME

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites

_OTHERS = re.compile(r"\b(?:mps|xpu|npu|accelerator|privateuse)")
_IS_ARRAY = re.compile(r"(?:\w+\.)*is_(?:numpy|np|ndarray)\w*\(")
#: A condition that asks whether an option for cards was given: `self.device_id is None`, `gpus != None`.
_NO_CARDS = re.compile(r"(?:\w+\.)*(?:\w+_)?(?:gpus?|(?:gpu|device|cuda|card)_?ids?) (?P<is>is|is not|==|!=) None")

#: Methods of tensors that give them in another shape.
_SHAPES = SHAPES | {"expand", "repeat"}
_OF_LISTS = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.tensor"})


# -- for the host -----------------------------------------------------------------------------------------------------


def is_no_alternative(sites: CallSites, event: Meet) -> bool:
    """Whether the paths of a function that give tensors on two devices are those of different processes or devices, or
    one is for a placeholder of `torch.fx`, or for a call without the argument whose device the others take."""
    function = sites.body(event.function) if event.how == "paths" else None
    if function is None:
        return False
    by_rank = any(isinstance(node, ast.If) and "rank" in ast.unparse(node.test) for node in walk(function))
    if by_rank or any(is_under(function, event.node, word) for word in ("cpu", "is_torch_fx_proxy")):
        return True
    asked = {
        n.value.id
        for n in walk(function)
        if isinstance(n, ast.Attribute) and n.attr == "device" and isinstance(n.value, ast.Name)
    }
    return any(is_without(function, event.node, name) for name in asked.intersection(parameter_names(function)))


def is_without(function: ast.AST, place: ast.AST, name: str) -> bool:
    """Whether a place in a function stands in the arm of an `if` for which a name is None."""
    for node in walk(function):
        if isinstance(node, (ast.If, ast.IfExp)):
            without, given_one = asks_none(node.test, name), asks_none(node.test, name, ast.IsNot)
            arm = node.body if without else node.orelse if given_one else []
            if any(holds(part, place) for part in (arm if isinstance(arm, list) else [arm])):
                return True
    return False


def is_made_for_host(sites: CallSites, event: Meet) -> bool:
    """Whether what meets an accelerator's is made where a device is the CPU: `if x.device == torch.device("cpu"):`.

    Also where there is no CUDA, in a file that knows of no other accelerator.
    """
    function = sites.body(event.function)
    made = [creation.place for creation in event.off.value.made]
    if function is None or not made:
        return False
    asked = [node for node in walk(function) if isinstance(node, ast.If)]
    arms = [part for node in asked if asks_for_cpu(node.test) for part in node.body]
    without_cuda = [part for node in asked if node.orelse and asks_for_cuda(node.test) for part in node.orelse]
    if without_cuda and _OTHERS.search(sites.text) is None:
        arms += without_cuda
    return all(any(holds(part, node) for part in arms) for node in made)


def is_asked_whether_empty(sites: CallSites, event: Meet) -> bool:
    """Whether what meets an accelerator's is made without elements, and the function asks whether it has some.

    `out = torch.Tensor([])`, then `x if out.numel() == 0 else torch.cat((out, x))`, or `if out.numel():`: it meets nothing
    before it is filled.
    """
    function = sites.body(event.function)
    made = event.off.value.made
    if function is None or not made or not all(is_without_elements(m.node, m.function) for m in made):
        return False
    *_, start = chain(event.off.node)
    names = {ast.unparse(event.off.node), *([start.id] if isinstance(start, ast.Name) else [])}
    asked = {text for name in names for text in (f"{name}.numel()", f"len({name})", f"{name}.nelement()")}
    for node in walk(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            if ast.unparse(node.left) in asked and is_zero(node.comparators[0]):
                return True
        if isinstance(node, (ast.If, ast.IfExp)):
            counted = [part for part in parts_of(node.test) if isinstance(part, ast.Call) and counts_elements(part)]
            body = node.body if isinstance(node.body, list) else [node.body]
            if any(ast.unparse(part) in asked for part in counted):
                return True
            if (counted or any(map(asks_for_elements, parts_of(node.test)))) and any(
                holds(part, event.node) for part in body
            ):
                return True  # what was made of it, or beside it, under a condition that asks for its elements
    return False


def asks_for_elements(test: ast.expr) -> bool:
    """Whether a condition asks whether something has elements: `x.numel() != 0`, `len(x) > 0`, `x.shape[0] > 0`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not is_zero(test.comparators[0]):
        return False
    counted, asks = test.left, isinstance(test.ops[0], (ast.NotEq, ast.Gt))
    if isinstance(counted, ast.Subscript):
        return asks and isinstance(counted.value, ast.Attribute) and counted.value.attr == "shape"
    name = counted.func.attr if isinstance(counted, ast.Call) and isinstance(counted.func, ast.Attribute) else ""
    return asks and isinstance(counted, ast.Call) and (name == "size" or counts_elements(counted))


def counts_elements(call: ast.Call) -> bool:
    """Whether a call counts the elements of something: `x.numel()`, `len(x)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("numel", "nelement", "len")


def parts_of(test: ast.expr) -> list[ast.expr]:
    """The parts of a condition that `and`, `or` and `not` put together."""
    if isinstance(test, ast.BoolOp):
        return [part for value in test.values for part in parts_of(value)]
    return parts_of(test.operand) if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else [test]


def is_without_elements(call: ast.Call, function: str) -> bool:
    """Whether a call makes a tensor of an empty list, or with a size of 0: `torch.tensor([])`, `torch.zeros(0, 4)`."""
    if any(isinstance(a, (ast.List, ast.Tuple)) and not a.elts for a in call.args[:1]):
        return function in _OF_LISTS
    sizes = [size for a in call.args for size in (a.elts if isinstance(a, (ast.List, ast.Tuple)) else [a])]
    return function in OF_SIZES and any(map(is_zero, sizes))


def is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def asks_for_cuda(test: ast.expr) -> bool:
    """Whether a condition is `torch.cuda.is_available()`."""
    return isinstance(test, ast.Call) and ast.unparse(test.func) == "torch.cuda.is_available"


def asks_for_cpu(test: ast.expr) -> bool:
    """Whether a condition asks whether a device is the CPU: `x.device.type == "cpu"`, `x.is_cpu`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        sides = (test.left, test.comparators[0])
        return isinstance(test.ops[0], (ast.Eq, ast.In)) and any(map(is_cpu, sides))
    return isinstance(test, ast.Attribute) and test.attr == "is_cpu"


def is_under(function: ast.AST, place: ast.AST, word: str) -> bool:
    """Whether a place in a function stands in the body of an `if` that asks for a word: `if device.type == "cpu":`."""
    return any(
        isinstance(node, ast.If) and word in ast.unparse(node.test) and any(holds(part, place) for part in node.body)
        for node in walk(function)
    )


def asks_for_array(test: str) -> bool:
    """Whether a condition asks whether something is an array of numpy."""
    return (test.startswith("isinstance(") and "ndarray" in test) or _IS_ARRAY.match(test) is not None


def is_made_of_array(sites: CallSites, event: Meet) -> bool:
    """Whether what meets an assumed tensor is made of an array where the function was given one: `torch.from_numpy(x)`
    under `if isinstance(x, np.ndarray)`. Who hands over an array hands over no tensor of an accelerator beside it.
    """
    function = sites.body(event.function)
    made = [creation.place for creation in event.off.value.made]
    if function is None or not made:
        return False
    arms: list[ast.AST] = []
    for node in walk(function):
        if isinstance(node, ast.If) and asks_for_array(ast.unparse(node.test)):
            arms += node.body
        elif isinstance(node, ast.IfExp) and asks_for_array(ast.unparse(node.test)):
            arms.append(node.body)
    return bool(arms) and all(any(holds(arm, node) for arm in arms) for node in made)


# -- options that nobody takes ----------------------------------------------------------------------------------------


def is_never_taken(sites: CallSites, event: Meet) -> bool:
    """Whether an event is in a branch for an option of a private helper that is off by default and in every call."""
    function = sites.function(event.function)
    if function is None or isinstance(function.node, ast.Lambda):
        return False
    if not is_internal(sites, function.node.name):
        return False  # who calls what is public may be elsewhere
    places = [event.node, *(creation.place for creation in event.off.value.made)]
    options = {o for place in places for o in wanted_options(function.node, place)}
    options &= {o for o in options if is_off(function.node.args, o)}
    if not options:
        return False
    calls = [site for looked, site in sites.every_call(function)]
    return bool(calls) and any(all(leaves_off(function, site, option) for site in calls) for option in options)


def is_always_given(sites: CallSites, event: Meet) -> bool:
    """Whether what meets an accelerator's is made where a parameter of a private helper is None, and every call gives one.

    `if mask is None: mask = torch.ones(n)` where each call says `mask=rows.reshape(n)`, or a name that stands for that alone.
    """
    function = sites.function(event.function)
    made = [creation.place for creation in event.off.value.made]
    if function is None or isinstance(function.node, ast.Lambda) or not made or not is_private(function.node.name):
        return False
    node = function.node
    names = {
        name
        for name in parameter_names(node)
        if default_of(node.args, name) is not None and all(is_without(node, place, name) for place in made)
    }
    calls = list(sites.every_call(function)) if names else []
    return bool(calls) and any(all(gives_tensor(function, site, name) for _, site in calls) for name in names)


def gives_tensor(function: Function, site: Site, name: str) -> bool:
    """Whether a call passes for a parameter what a method gives that only tensors and arrays have: never None."""
    passed = given(site.call, name, Callers.position(function, name))
    if len(passed) != 1 or any(isinstance(a, ast.Starred) for a in site.call.args):
        return False
    values = passed
    if isinstance(passed[0], ast.Name) and site.caller is not None:
        values = bindings(site.caller).get(passed[0].id, [])
        if len(values) != site.caller.bound.get(passed[0].id):
            return False
    return bool(values) and all(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr in _SHAPES for v in values
    )


def is_never_given(sites: CallSites, function: Function, name: str) -> bool:
    """Whether each call of a private helper leaves a parameter at its default, a constant: there it is no tensor."""
    node = function.node
    if isinstance(node, ast.Lambda) or not is_internal(sites, node.name):
        return False
    default = default_of(node.args, name)
    calls = [site.call for _, site in sites.every_call(function)]
    starred = any(isinstance(a, ast.Starred) for call in calls for a in call.args)
    if not isinstance(default, ast.Constant) or not calls or starred:
        return False
    position = Callers.position(function, name)
    return not any(given(call, name, position) or any(k.arg is None for k in call.keywords) for call in calls)


def is_internal(sites: CallSites, name: str) -> bool:
    """Whether all that calls a function is in the project: it is private, or the project is a program of its own."""
    return is_private(name) or (not name.startswith("__") and sites.files.is_closed)


def wanted_options(function: ast.AST, place: ast.AST) -> Iterator[str]:
    """The names that must be true for a place in a function to run: those of the `if`s around it, and of early returns."""
    row = getattr(place, "lineno", 0)
    for node in statements(function):
        if not isinstance(node, ast.If) or not node.lineno < row <= (node.end_lineno or 0):
            continue
        if any(s.lineno <= row <= (s.end_lineno or 0) for s in node.body):
            parts = (
                node.test.values
                if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
                else [node.test]
            )
            yield from (part.id for part in parts if isinstance(part, ast.Name))
    for statement in getattr(function, "body", ()):  # `if not option: return`
        if not isinstance(statement, ast.If) or (statement.end_lineno or 0) >= row or statement.orelse:
            continue
        test = statement.test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Name):
            if isinstance(statement.body[-1], (ast.Return, ast.Raise)):
                yield test.operand.id


def is_off(arguments: ast.arguments, name: str) -> bool:
    """Whether a parameter is False or None where a call does not say: by default, or as it has no default."""
    default = default_of(arguments, name)
    if default is None:
        return parameter_of(arguments, name) is not None
    return isinstance(default, ast.Constant) and default.value in (False, None)


def leaves_off(function: Function, site: Site, name: str) -> bool:
    """Whether a call leaves an option as it is, or says False."""
    call = site.call
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return False
    passed = given(call, name, Callers.position(function, name))
    return all(isinstance(p, ast.Constant) and p.value in (False, None) for p in passed)


def is_without_cards(event: Meet) -> bool:
    """Whether what is met is on the CPU where an option for cards is None alone, and the option places both operands.

    `if self.gpus is None: out = x @ weight` beside `if self.gpus is not None: mask = mask.cuda(self.gpus[0])`: without it
    all is on the host.
    """
    off, other = event.off.value, event.other.value
    if off.split is None or other.split is None or off.split[0] != other.split[0] or off.made:
        return False
    asked = _NO_CARDS.fullmatch(off.split[0])
    paths = list(zip(off.split[1:], other.split[1:], strict=True))  # where the condition holds, and where it does not
    if asked is not None and asked["is"] in ("is not", "!="):
        paths.reverse()
    without, with_cards = paths
    on_host = without[0].device == CPU and without[1].device == HOME
    return asked is not None and on_host and with_cards[0].device == with_cards[1].device
