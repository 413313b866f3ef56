"""Whether the text of a file shows that an expression is a tensor on the card that a process chose for itself.

labels = labels.cuda(gpu)               # moved there
correct = found.eq(labels.view(1, -1))  # computed there
meter.update(correct.float().sum(), n)  # kept by an object: `meter.average` is `sum / count`, and `sum += value * n`
return meter.average                    # given back

It is followed through variables, functions, lists and small classes of the file. What goes through `item()`, `float()` or
`cpu()` on some path is a number, or on the host, and is not counted.
"""

from __future__ import annotations

import ast
import re
from typing import Literal, NamedTuple, TypeAlias

from devlint.facts.surveys.outline import Outline, dotted, own_nodes
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.text.references import given, last_name
from devlint.facts.text.signatures import parameter_names

_DEPTH = 24
#: What gives numbers or host data, of a tensor or anything else.
_TO_HOST = TO_HOST | {"size", "dim", "numel", "__len__"}
_NUMBERS = frozenset({"float", "int", "round", "len", "str", "bool", "range"})
#: Methods that give a tensor where their tensors are.
_COMPUTED = frozenset(
    {
        "abs", "add", "add_", "all", "any", "argmax", "argmin", "clone", "contiguous", "detach", "div", "div_", "double", "eq",
        "equal", "expand_as", "exp", "flatten", "float", "half", "long", "max", "mean", "median", "min", "mul", "mul_", "ne",
        "neg", "pow", "reshape", "sqrt", "squeeze", "std", "sub", "sub_", "sum", "t", "topk", "transpose", "type_as",
        "unsqueeze", "view", "view_as",
    }
)  # fmt: skip
_NAMES_CARD = re.compile(r"gpu|rank|card", re.IGNORECASE)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Place(NamedTuple):
    """Where an expression is evaluated: in a function, or the module, and for a method the object that it runs on."""

    scope: ast.AST
    of: tuple[str, ast.AST] | None = None  # the object's name, and the scope that has it


#: What is found of an expression: the variable of its card, that it is a number or on the host, or nothing.
Found: TypeAlias = ast.expr | Literal["host"] | None


def card_of(o: Outline, node: ast.expr, scope: ast.AST) -> ast.expr | None:
    """The variable that names the card on which an expression is a tensor; None where the file does not show one."""
    found = _Trace(o).card(node, Place(scope), 0)
    return found if isinstance(found, ast.expr) else None


def either(found: list[Found]) -> Found:
    """What holds where one of several values is meant: no card where one of them is on the host."""
    return "host" if "host" in found else together(found)


def together(found: list[Found]) -> Found:
    """What is computed of several values: it is on a card if one of them is, beside numbers."""
    cards = [card for card in found if isinstance(card, ast.expr)]
    return cards[0] if cards else "host" if "host" in found else None


class _Trace:
    """One question, and what was found of parts of it."""

    def __init__(self, o: Outline) -> None:
        self.o = o
        self.known: dict[tuple[int, Place, int | None], Found] = {}

    def card(self, node: ast.expr | None, place: Place, depth: int, element: int | None = None) -> Found:
        """The card on which an expression is, or its element of that number."""
        key = id(node), place, element
        if node is None or depth > _DEPTH or key in self.known:
            return self.known.get(key)
        self.known[key] = None  # while it is being asked
        found = self.known[key] = self.of(node, place, depth + 1, element)
        return found

    def of(self, node: ast.expr, place: Place, depth: int, element: int | None) -> Found:
        if isinstance(node, ast.Tuple) and element is not None and element < len(node.elts):
            return self.card(node.elts[element], place, depth)
        if isinstance(node, (ast.Tuple, ast.List)):
            return self.any(node.elts, place, depth)
        if isinstance(node, ast.ListComp):
            return self.card(node.elt, place, depth)
        if isinstance(node, (ast.Subscript, ast.Starred)):
            return self.card(node.value, place, depth)
        if isinstance(node, ast.UnaryOp):
            return self.card(node.operand, place, depth)
        if isinstance(node, ast.BinOp):
            return self.any([node.left, node.right], place, depth)
        if isinstance(node, ast.Compare):
            return self.any([node.left, *node.comparators], place, depth)
        if isinstance(node, ast.Call):
            return self.of_call(node, place, depth, element)
        if isinstance(node, ast.Attribute):
            return self.of_attribute(node, place, depth)
        return self.of_name(node, place, depth) if isinstance(node, ast.Name) else None

    def any(self, nodes: list[ast.expr], place: Place, depth: int) -> Found:
        """What is computed of several expressions."""
        return together([self.card(node, place, depth) for node in nodes])

    def of_call(self, node: ast.Call, place: Place, depth: int, element: int | None) -> Found:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr in _TO_HOST:
                return "host"
            if function.attr in ("cuda", "to"):
                return chosen_card(node)
            if (self.o.qualname(function) or "").startswith("torch."):
                return self.any(node.args, place, depth)
            return self.any([function.value, *node.args], place, depth) if function.attr in _COMPUTED else None
        if not isinstance(function, ast.Name):
            return None
        if function.id in _NUMBERS:
            return "host"
        if function.id in ("max", "min", "sum"):
            return self.any(node.args, place, depth)
        called = self.o.module_function(function.id)
        if called is None:
            return None
        inner = Place(called)
        returned = [n.value for n in own_nodes(called) if isinstance(n, ast.Return) and n.value is not None]
        return either([self.card(value, inner, depth, element) for value in returned])

    def of_name(self, node: ast.Name, place: Place, depth: int) -> Found:
        scope = place.scope
        found = [self.card(value, place, depth, element) for value, element in bindings(scope, node.id)]
        if isinstance(scope, Function) and node.id in parameter_names(scope):
            found += [self.card(value, outer, depth) for value, outer in self.arguments(scope, node.id, place)]
        return either(found)

    def arguments(self, function: Function, name: str, place: Place) -> list[tuple[ast.expr, Place]]:
        """What calls pass for a parameter: those of a function of the file, or of a method on one object."""
        position = parameter_names(function).index(name)
        found: list[tuple[ast.expr, Place]] = []
        for call in self.o.calls:
            if place.of is None:
                if isinstance(call.func, ast.Name) and call.func.id == function.name:
                    found += [(value, Place(self.o.scope(call))) for value in given(call, name, position)]
            elif isinstance(call.func, ast.Attribute) and call.func.attr == function.name:
                owner, scope = place.of
                if self.o.scope(call) is scope and dotted(call.func.value) == owner:
                    found += [(value, Place(scope)) for value in given(call, name, position - 1)]
        return found

    def of_attribute(self, node: ast.Attribute, place: Place, depth: int) -> Found:
        if node.attr in ("data", "T"):
            return self.card(node.value, place, depth)
        if not isinstance(node.value, ast.Name):
            return None
        if node.value.id == "self" and place.of is not None:
            class_ = self.o.nearest(place.scope, ast.ClassDef)
            of = place.of
        else:
            values = [value for value, _ in bindings(place.scope, node.value.id)]
            made = [last_name(value.func) for value in values if isinstance(value, ast.Call)]
            class_ = next((c for c in self.o.classes if c.name in made), None) if len(made) == 1 else None
            of = (node.value.id, place.scope)
        found: list[Found] = []
        for method in class_.body if class_ is not None else ():
            if isinstance(method, Function):
                values_in = bindings(method, f"self.{node.attr}")
                found += [self.card(value, Place(method, of), depth, element) for value, element in values_in]
        return either(found)


def bindings(scope: ast.AST, path: str) -> list[tuple[ast.expr, int | None]]:
    """What a scope gives a path, with the number of the element that it takes of it, and what it adds to it."""
    found: list[tuple[ast.expr, int | None]] = []
    for node in own_nodes(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if dotted(target) == path:
                    found.append((node.value, None))
                elif isinstance(target, ast.Tuple):
                    found += [(node.value, place) for place, part in enumerate(target.elts) if dotted(part) == path]
        elif isinstance(node, ast.AugAssign) and dotted(node.target) == path:
            found.append((node.value, None))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            if node.args and dotted(node.func.value) == path:
                found.append((node.args[0], None))
    return found


def chosen_card(move: ast.Call) -> ast.expr | None:
    """The variable that a move takes its card from: `x.cuda(gpu)`, `x.to(args.local_rank)`; None for any other place."""
    assert isinstance(move.func, ast.Attribute)
    if not move.args:
        return None
    place = move.args[0]
    path = dotted(place)
    if path is None:
        return None
    return place if move.func.attr == "cuda" or _NAMES_CARD.search(path.rpartition(".")[2]) is not None else None
