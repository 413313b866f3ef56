"""What stands where a device belongs: a device, the index of a card, or what nobody knows, by what the file binds to it.

An index is no device. `.cuda(1)` takes one, and `.to(1)` names a card as well: a conversion that puts it there still needs
the card. The evidence is what the file binds: numbers, `int(...)`, options with `type=int`, annotations, comparisons with
numbers, and what the calls of a function give to its parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

from devlint.api import ApiCall, CudaMethod, DeviceLiteral, Facts

from ._run_device import guard_of
from ._shared import File, parsed

Kind = Literal["device", "index", ""]
_Use = TypeVar("_Use", bound=CudaMethod | DeviceLiteral)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Calls whose result is a number; `get_device()` of a tensor gives one, too [torch/_tensor_docs.py].
_NUMBERS = frozenset(
    {"int", "len", "torch.cuda.current_device", "torch.cuda.device_count", "torch.distributed.get_rank",
     "torch.accelerator.current_device_index", "torch.accelerator.device_count"}
)  # fmt: skip
_DEEP = 6  # bindings that are followed one after the other


def given_device(event: CudaMethod, facts: Facts) -> str | None:
    """The argument of `.cuda(device)` where it is a device; None where it is an index, or nothing says what it is."""
    argument = event.argument
    if not isinstance(argument, ast.Name | ast.Attribute):
        return None
    text, file = ast.unparse(argument), _bindings(File(facts))
    kind = file.kind(argument, argument.lineno)
    if kind == "index":
        return None
    value = event.scope.get(text)
    if kind == "device" or (value is not None and value.kind in ("device", "string") and value.device):
        return text
    if value is not None and value.kind != "unknown":
        return None
    if file.is_used_as_device(argument):
        return text
    named = text.rpartition(".")[2] in ("device", "dev")
    return text if named and file.is_left_open(argument) else None


def without_index(event: _Use, facts: Facts) -> _Use:
    """An event without the device of the run that is in scope, where that name holds an index, or None there."""
    if event.run_device is None or not isinstance(event.node, ast.expr | ast.stmt):
        return event
    absent = {f"{event.run_device} is None", f"not {event.run_device}"}
    if absent.isdisjoint(event.under.tests) and not is_index(event.run_device, event.node.lineno, facts):
        return event
    return replace(event, run_device=None, run_device_is_proved=False)


def is_index(path: str, row: int, facts: Facts) -> bool:
    """Whether what a row reads by a name or a path is the index of a card."""
    try:
        node = ast.parse(path, mode="eval").body
    except SyntaxError:
        return False
    return isinstance(node, ast.Name | ast.Attribute) and _bindings(File(facts)).kind(node, row) == "index"


def is_current(event: CudaMethod, facts: Facts) -> bool:
    """Whether a move goes to the current card by its index: the file makes it so, by `set_device` of the same.

    A name that a function binds more than once is the same index only under the same conditions.
    """
    argument = event.argument
    if argument is None:
        return False
    index, changes = ast.unparse(argument), _bindings(File(facts)).is_bound_again(argument)
    return any(
        isinstance(other, ApiCall)
        and other.qualname.endswith((".set_device", ".set_device_index"))
        and [operand.text for operand in other.arguments.values()] == [index]
        and (not changes or set(other.under.tests) <= set(event.under.tests))
        for other in facts.events
    )


def stays_on_index(facts: Facts) -> int | None:
    """The row of a move to a card by an index that is computed, which no conversion of the file settles."""
    for event in facts.events:
        if isinstance(event, CudaMethod) and _is_by_index(event, facts):
            return facts.text.count("\n", 0, event.span.start) + 1
    return None


def _is_by_index(event: CudaMethod, facts: Facts) -> bool:
    argument = event.argument
    if argument is None or isinstance(argument, ast.Constant) or event.index is not None or guard_of(event) is not None:
        return False
    return given_device(event, facts) is None and not is_current(event, facts)


class ContextAsDevice(NamedTuple):
    """A name that holds `torch.cuda.device(...)`, and the call. `is_entered`: a `with` statement uses it as well."""

    name: str
    node: ast.Call
    is_entered: bool


def context_as_device(facts: Facts) -> ContextAsDevice | None:
    """What makes a card current in a `with` statement, bound to a name that torch gets as a device."""
    return _context(File(facts)) if "cuda.device(" in facts.text else None


@lru_cache(maxsize=1)
def _context(file: File) -> ContextAsDevice | None:
    bindings = _bindings(file)
    for node in bindings.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
            continue
        target, call = node.targets[0], node.value
        if not isinstance(target, ast.Name | ast.Attribute) or bindings.qualified(call.func) != "torch.cuda.device":
            continue
        path = ast.unparse(target)
        if any(ast.unparse(each) == path for other in bindings.calls for each in bindings.devices_of(other)):
            entered = (item for other in bindings.nodes if isinstance(other, ast.With) for item in other.items)
            return ContextAsDevice(path, call, any(ast.unparse(item.context_expr) == path for item in entered))
    return None


class _Binding(NamedTuple):
    """What is bound, and where it is read; `kind`: what is known without reading it."""

    value: ast.expr | None
    row: int
    kind: Kind = ""


class _Bindings:
    """The bindings of a file."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        tree = parsed(facts.text)
        self.nodes = list(ast.walk(tree)) if tree is not None else []
        self.functions = [node for node in self.nodes if isinstance(node, _Function)]
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.assigned: dict[str, list[_Binding]] = {}
        self.compared: dict[str, list[int]] = {}  # rows that compare a name with a number
        for node in self.nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        """Note what a node binds, and what it compares with a number."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, _Binding(node.value, node.lineno))
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            self._bind(node.target, _Binding(node.value, node.lineno))
        elif isinstance(node, ast.For):
            counts = isinstance(node.iter, ast.Call) and self.qualified(node.iter.func) == "range"
            self._bind(node.target, _Binding(None, node.lineno, "index" if counts else ""))
        elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
            sides = [node.left, node.comparators[0]]
            for side, other in (sides, reversed(sides)):
                if isinstance(side, ast.Name | ast.Attribute) and self._is_number(other):
                    self.compared.setdefault(ast.unparse(side), []).append(node.lineno)

    def _bind(self, target: ast.expr, binding: _Binding) -> None:
        if isinstance(target, ast.Name | ast.Attribute):
            self.assigned.setdefault(ast.unparse(target), []).append(binding)

    def kind(self, node: ast.expr, row: int, deep: int = 0) -> Kind:
        """What an expression is that is read in a row."""
        if deep > _DEEP:
            return ""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return "device"
            return "index" if isinstance(node.value, int) and not isinstance(node.value, bool) else ""
        if isinstance(node, ast.JoinedStr):
            return "device"
        if isinstance(node, ast.Call):
            return self._kind_of_call(node)
        if isinstance(node, ast.IfExp):
            return _either(self.kind(each, row, deep + 1) for each in (node.body, node.orelse))
        if isinstance(node, ast.BoolOp):
            return _either(self.kind(each, row, deep + 1) for each in node.values)
        if isinstance(node, ast.BinOp):
            left = self.kind(node.left, row, deep + 1)
            return left if left else self.kind(node.right, row, deep + 1)
        if isinstance(node, ast.Subscript):
            return self._kind_of_part(node, row, deep)
        if isinstance(node, ast.Name | ast.Attribute):
            if self._is_compared_with_number(node, row):
                return "index"
            return _either(
                each.kind or (self.kind(each.value, each.row, deep + 1) if each.value is not None else "")
                for each in self.bindings(node, row)
            )
        return ""

    def _kind_of_call(self, node: ast.Call) -> Kind:
        name = self.qualified(node.func)
        if name == "torch.device":
            return "device"
        return "index" if name in _NUMBERS or name.endswith(".get_device") else ""

    def _kind_of_part(self, node: ast.Subscript, row: int, deep: int) -> Kind:
        """`cards[0]` of a list that the file writes."""
        if isinstance(node.value, ast.List | ast.Tuple):
            return _either(self.kind(each, row, deep + 1) for each in node.value.elts)
        if not isinstance(node.value, ast.Name | ast.Attribute):
            return ""
        kinds: list[Kind] = []
        for each in self.bindings(node.value, row):
            if isinstance(each.value, ast.List | ast.Tuple):
                kinds += [self.kind(item, each.row, deep + 1) for item in each.value.elts]
            elif isinstance(each.value, ast.ListComp):
                kinds.append(self.kind(each.value.elt, each.row, deep + 1))
            else:
                kinds.append("")
        return _either(kinds)

    def bindings(self, node: ast.Name | ast.Attribute, row: int) -> Iterator[_Binding]:
        """What the file binds to a name or a path: in the function around a row, else in the module."""
        if isinstance(node, ast.Attribute):
            yield from self.assigned.get(ast.unparse(node), ())
            yield from self._options(node.attr)
            return
        function = self._around(row)
        if function is not None:
            inside = [each for each in self.assigned.get(node.id, ()) if _is_inside(each.row, function)]
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            own = next((each for each in arguments if each.arg == node.id), None)
            yield from inside
            if own is not None:
                yield from self._given(function, own)
            if inside or own is not None:
                return
        yield from self.assigned.get(node.id, ())

    def _options(self, name: str) -> Iterator[_Binding]:
        """What `add_argument("--name", ...)` says of an option: a number by its type, or its default."""
        for call in self.calls:
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
                continue
            written = [each.value for each in call.args if isinstance(each, ast.Constant)]
            if not any(isinstance(each, str) and each.lstrip("-").replace("-", "_") == name for each in written):
                continue
            given = {each.arg: each.value for each in call.keywords}
            is_number = "type" in given and ast.unparse(given["type"]) == "int"
            yield _Binding(given.get("default"), call.lineno, "index" if is_number else "")

    def _given(self, function: _Function, parameter: ast.arg) -> Iterator[_Binding]:
        """What a parameter is by its annotation, its default, and the calls of the file."""
        annotation = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        if annotation.strip("'\"") in ("int", "int | None", "Optional[int]", "typing.Optional[int]"):
            yield _Binding(None, function.lineno, "index")
        elif annotation.endswith("device") or annotation == "str":
            yield _Binding(None, function.lineno, "device")
        placed = [*function.args.posonlyargs, *function.args.args]
        defaults = dict(zip(reversed(placed), reversed(function.args.defaults), strict=False))
        default = defaults.get(parameter)
        if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
            yield _Binding(default, function.lineno)
        place = placed.index(parameter) if parameter in placed else None
        first = 1 if placed and placed[0].arg in ("self", "cls") else 0
        for call in self.calls:
            if _last(call.func) != function.name or _is_inside(call.lineno, function):
                continue
            named = next((each.value for each in call.keywords if each.arg == parameter.arg), None)
            if named is None and place is not None and place - first < len(call.args) and place >= first:
                named = call.args[place - first]
            if named is not None and not isinstance(named, ast.Starred):
                yield _Binding(named, call.lineno)

    def is_left_open(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether nothing but a parameter, of which nobody says what it is, is bound to a name."""
        for each in self.bindings(node, node.lineno):
            function = self._around(each.row)
            value = each.value
            if function is None or not isinstance(value, ast.Name):
                return False
            if all(own.arg != value.id for own in ast.walk(function.args) if isinstance(own, ast.arg)):
                return False
        return True

    def is_bound_again(self, node: ast.expr) -> bool:
        """Whether the function around a name binds it more than once."""
        function = self._around(node.lineno)
        if function is None or not isinstance(node, ast.Name):
            return False
        return sum(_is_inside(each.row, function) for each in self.assigned.get(node.id, ())) > 1

    def is_used_as_device(self, node: ast.expr) -> bool:
        """Whether the function around a name, or the file for a path, gives it to torch as a device."""
        path, function = ast.unparse(node), self._around(node.lineno) if isinstance(node, ast.Name) else None
        return any(
            ast.unparse(each) == path
            for call in self.calls
            if function is None or _is_inside(call.lineno, function)
            for each in self.devices_of(call)
        )

    def devices_of(self, call: ast.Call) -> Iterator[ast.expr]:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            yield from call.args[:1]
        if self.qualified(call.func).startswith("torch."):
            yield from (each.value for each in call.keywords if each.arg in ("device", "map_location"))

    def _is_compared_with_number(self, node: ast.expr, row: int) -> bool:
        """Whether the function around a row compares a name with a number: `device == 0`, `device == int(rank)`."""
        function = self._around(row)
        return any(function is None or _is_inside(at, function) for at in self.compared.get(ast.unparse(node), ()))

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.UnaryOp):
            return self._is_number(node.operand)
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int) and not isinstance(node.value, bool)
        return isinstance(node, ast.Call) and self._kind_of_call(node) == "index"

    def _around(self, row: int) -> _Function | None:
        """The innermost function around a row."""
        found = [each for each in self.functions if _is_inside(row, each)]
        return max(found, key=lambda each: each.lineno, default=None)

    def qualified(self, node: ast.expr) -> str:
        first, dot, rest = ast.unparse(node).partition(".")
        return f"{self.facts.imports.get(first, first)}{dot}{rest}"


def _either(kinds: Iterable[Kind]) -> Kind:
    """One kind for several values: an index where one is an index, a device where all that is known is one."""
    found = list(kinds)
    if "index" in found:
        return "index"
    return "device" if found and all(each == "device" for each in found) else ""


def _is_inside(row: int, function: _Function) -> bool:
    return function.lineno <= row <= (function.end_lineno or 0)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=1)
def _bindings(file: File) -> _Bindings:
    return _Bindings(file.facts)
