"""Flags that nothing turns on: `show = False` in a function; `self.soft = soft`, False in every construction.

Asked before a finding is reported. A name that a function binds once, to False or None, is that wherever it is read. The
constructions of a class are looked for in the whole project; a flag that one constructor hands down to the next is
followed. Where a construction cannot be seen through, nothing is concluded.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from devlint.facts.events import Event, Meet
from devlint.facts.objections.unmoved import below_super, names_of
from devlint.facts.project.project import is_imported
from devlint.facts.text.callers import Callers
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.constants import LEAVES, Flag, truth
from devlint.facts.text.defined import Function
from devlint.facts.text.nodes import children, classes, holds, statements, walk
from devlint.facts.text.references import is_own_attribute, is_private, last_name
from devlint.facts.text.scan import Site
from devlint.facts.text.signatures import Plain, default_of, given_at, is_kept_parameter, parameter_of

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked

DEPTH = 3  # constructors that hand a flag down to the next
_MODULE = frozenset({"Module", "object", "ABC"})
_COMPARES: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def is_switched_off(sites: CallSites, event: Event) -> bool:
    """Whether an event, or what makes its tensor, stands where a flag of its object would have to be what it never is.

    Also in a method that is only called there.
    """
    places: list[ast.AST] = [event.node]
    if isinstance(event, Meet):
        places += [creation.place for creation in event.off.value.made]
    body = sites.body(event.function)
    if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_dead_by_locals(body, places):
        return True
    class_ = sites.class_of(event.function)
    home = sites.files.look(sites.path)
    method = class_.methods.get(event.function.split(".")[1]) if class_ is not None and "." in event.function else None
    if class_ is None or home is None or method is None:
        return False
    if any(is_dead(sites, home, class_, method, place) for place in places):
        return True
    return is_called_in_vain(sites, home, class_, method.name, 0)


# -- what never runs --------------------------------------------------------------------------------------------------


def is_dead(sites: CallSites, home: Looked, class_: ClassFacts, method: Plain, place: ast.AST) -> bool:
    """Whether a condition on flags keeps a place in a method from running."""

    def known(node: ast.expr) -> Flag:
        return flag(sites, home, class_, method, node, 0)

    return any(truth(test, known) is (not wanted) for test, wanted in conditions(method, place))


def is_dead_by_locals(function: Plain, places: list[ast.AST]) -> bool:
    """Whether a condition on what a function binds once keeps a place in it from running."""

    def known(node: ast.expr) -> Flag:
        return of_local(function, node.id) if isinstance(node, ast.Name) else None

    return any(
        (not wanted) in (truth(test, known), compared(function, test))
        for place in places
        for test, wanted in conditions(function, place)
    )


def compared(function: Plain, test: ast.expr) -> bool | None:
    """What a comparison with a whole number gives for a name that a function binds once, to such a number: `layers != 0`
    after `layers = 0`; None for any other condition."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or len(test.ops) != 1:
        return None
    right, compare = test.comparators[0], _COMPARES.get(type(test.ops[0]))
    if compare is None or not isinstance(right, ast.Constant) or type(right.value) is not int:
        return None
    left = constant_of_local(function, test.left.id)
    return compare(left.value, right.value) if left is not None and type(left.value) is int else None


def is_called_in_vain(sites: CallSites, home: Looked, class_: ClassFacts, name: str, depth: int) -> bool:
    """Whether a method is called, and only on its own object under flags that are never on."""
    if depth > 1 or name.startswith("__") or name == "forward" or class_.methods[name].decorator_list:
        return False
    if not sites.files.reads_all(name):
        return False
    calls = 0
    for looked in sites.files.mentioning(name):
        if is_quoted(looked, name):
            return False
        named = list(names_of(looked.loaded.tree, name))
        if not named:
            continue
        around = {id(node): owner for owner in classes(looked.loaded.tree) for node in walk(owner)}
        called = {id(site.call.func) for site in looked.loaded.scan.calls.get(name, ())}
        for node in named:
            owner = around.get(id(node))
            if owner is not None and owner is not class_.node and is_own_attribute(node, name):
                if not related(sites, home, class_, owner.name):
                    continue
            if owner is not class_.node or not is_own_attribute(node, name) or id(node) not in called:
                return False
            inside = next((m for m in class_.methods.values() if holds(m, node)), None)
            if inside is None:
                return False
            if not is_dead(sites, home, class_, inside, node):
                if not is_called_in_vain(sites, home, class_, inside.name, depth + 1):
                    return False
            calls += 1
    return calls > 0


def conditions(function: Plain, place: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """What must hold for a place in a function to run: conditions, and whether they must be true or false."""
    way = way_to(function, place)
    for outer, inner in pairwise(way):
        if isinstance(outer, (ast.If, ast.While)):
            if any(inner is part for part in outer.body):
                yield outer.test, True
            elif isinstance(outer, ast.If) and any(inner is part for part in outer.orelse):
                yield outer.test, False
        elif isinstance(outer, ast.IfExp):
            if inner is not outer.test:
                yield outer.test, inner is outer.body
        elif isinstance(outer, ast.BoolOp):
            for value in outer.values:
                if value is inner:
                    break
                yield value, isinstance(outer.op, ast.And)
        for block in (getattr(outer, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(block, list) or not any(inner is part for part in block):
                continue
            for statement in block:
                if statement is inner:
                    break
                if isinstance(statement, ast.If) and isinstance(statement.body[-1], LEAVES):
                    yield statement.test, False


def way_to(outer: ast.AST, inner: ast.AST) -> list[ast.AST]:
    """The nodes from one to another one inside it; none where it is not there."""
    if outer is inner:
        return [outer]
    for child in children(outer):
        found = way_to(child, inner)
        if found:
            return [outer, *found]
    return []


# -- what a flag is ---------------------------------------------------------------------------------------------------


def flag(sites: CallSites, home: Looked, class_: ClassFacts, method: Plain, node: ast.expr, depth: int) -> Flag:
    """What an expression in a method may be, as far as it is off: a constant, an attribute, a constructor's parameter."""
    if isinstance(node, ast.Constant):
        return of_constant(node)
    if isinstance(node, ast.Name) and method.name == "__init__" and is_kept_parameter(method, node.id):
        return of_parameter(sites, home, class_, method, node.id, depth)
    if isinstance(node, ast.Name):
        return of_local(method, node.id)
    if isinstance(node, ast.Attribute) and is_own_attribute(node, node.attr):
        return of_attribute(sites, home, class_, node.attr, depth)
    return None


@lru_cache(256)
def of_local(function: Plain, name: str) -> Flag:
    """What a flag is that a function, with what stands in it, binds once, in an assignment of a constant."""
    value = constant_of_local(function, name)
    return of_constant(value) if value is not None else None


def constant_of_local(function: Plain, name: str) -> ast.Constant | None:
    """The constant to which a function, with what stands in it, binds a name that it binds once."""
    stars = {each.arg for each in (function.args.vararg, function.args.kwarg) if each is not None}
    if parameter_of(function.args, name) is not None or name in stars:
        return None
    bound: list[ast.AST] = []
    for node in walk(function):
        if binds_otherwise(node, name):
            return None
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            bound.append(node)
    if len(bound) != 1:
        return None
    value = next((n.value for n in statements(function) if binds_alone(n, bound[0])), None)  # type: ignore[attr-defined]
    return value if isinstance(value, ast.Constant) else None


def binds_otherwise(node: ast.AST, name: str) -> bool:
    """Whether something other than an assignment may bind a name: an import, a handler, a pattern, a definition."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return name in node.names
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any(name in (each.asname, each.name.split(".")[0]) for each in node.names)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "exec"
    pattern = isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name == name
    defined = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler))
    return (
        pattern
        or (isinstance(node, ast.MatchMapping) and node.rest == name)
        or (defined and getattr(node, "name", None) == name)
    )


def of_attribute(sites: CallSites, home: Looked, class_: ClassFacts, name: str, depth: int) -> Flag:
    """What an attribute of a class's objects may be, if only its own constructor sets it, or the class itself."""
    found: frozenset[bool | None] = frozenset()
    for statement in class_.node.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and name in bound_by(statement):
            alone = isinstance(statement, ast.AnnAssign) or len(statement.targets) == 1
            said = of_constant(statement.value) if isinstance(statement.value, ast.Constant) and alone else None
            if said is None or not keeps_class_attributes(class_):
                return None
            found |= said
    of_class = bool(found)
    for method in class_.methods.values():
        for node in walk(method):
            if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load):
                bound = next((n for n in walk(method) if binds_alone(n, node)), None)
                value = getattr(bound, "value", None)
                if method.name != "__init__" and not isinstance(value, ast.Constant):
                    return None
                said = flag(sites, home, class_, method, value, depth) if value is not None else None
                if said is None:
                    return None
                found |= said
    if not found:
        return None
    if of_class and any(binds_in_body(class_, each, name) for each in mentions(sites, name)):
        return None
    if not sites.files.reads_all(name) or any(sets(sites, home, class_, each, name) for each in mentions(sites, name)):
        return None
    return found


def keeps_class_attributes(class_: ClassFacts) -> bool:
    """Whether the attributes of a class are no fields of its constructor, and no method of it sets some by their names."""
    if class_.node.decorator_list or class_.node.keywords or (class_.bases and not class_.is_module):
        return False
    nodes = (node for node in walk(class_.node) if isinstance(node, (ast.Name, ast.Attribute)))
    return not any(last_name(node) in ("setattr", "__dict__", "vars", "__setattr__") for node in nodes)


def binds_in_body(class_: ClassFacts, looked: Looked, name: str) -> bool:
    """Whether another class of a file, which may derive from one, binds that name in its body to anything but False or None.

    Also by a method, a property or a tuple. `use: bool` binds nothing.
    """
    for other in classes(looked.loaded.tree):
        if other is class_.node or not other.bases:
            continue
        off: set[int] = set()
        pending: list[ast.AST] = list(other.body)
        bound: list[ast.AST] = []
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bound += [node] if node.name == name else []
                continue
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                if node.value is None or (isinstance(node.value, ast.Constant) and of_constant(node.value) is not None):
                    off |= {id(each) for each in (node.targets if isinstance(node, ast.Assign) else [node.target])}
            elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                bound.append(node)
            pending += children(node)
        if any(id(each) not in off for each in bound):
            return True
    return False


def binds_alone(statement: ast.AST, target: ast.AST) -> bool:
    """Whether a statement gives a value to nothing but one target."""
    if isinstance(statement, ast.Assign):
        return len(statement.targets) == 1 and statement.targets[0] is target
    return isinstance(statement, ast.AnnAssign) and statement.target is target


def bound_by(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return set(map(last_name, targets))


def of_parameter(sites: CallSites, home: Looked, class_: ClassFacts, method: Plain, name: str, depth: int) -> Flag:
    """What a constructor gets for a parameter, by all that makes objects of its class; None where that is not known."""
    if depth > DEPTH or class_.node.decorator_list or not sites.files.reads_all(class_.name):
        return None
    if any(isinstance(n, ast.Call) and makes_own(n) for n in walk(class_.node)):
        return None
    found: frozenset[bool | None] = frozenset()
    default = default_of(method.args, name)
    position = Callers.position(Function(method, "__init__", class_), name)
    for looked in mentions(sites, class_.name):
        calls = list(sites.made(looked, home, class_.name))
        if is_quoted(looked, class_.name) or is_handed_on(sites, looked, home, class_.name, calls):
            return None
        for site in calls:
            said = of_argument(sites, looked, site, given_at(site.call, name, position, default), depth)
            if said is None:
                return None
            found |= said
    return found or None


def of_function(sites: CallSites, home: Looked, function: Function, name: str, depth: int) -> Flag:
    """What a plain function that only the project calls gets for a parameter."""
    node = function.node
    if depth > DEPTH or isinstance(node, ast.Lambda) or node.decorator_list or not sites.files.reads_all(node.name):
        return None
    if not (is_private(node.name) or sites.files.is_closed):
        return None
    for looked in mentions(sites, node.name):
        if is_quoted(looked, node.name) or node.name in looked.loaded.scan.handed:
            return None
    found: frozenset[bool | None] = frozenset()
    default = default_of(node.args, name)
    position = Callers.position(function, name)
    for looked, site in sites.callers.sites(home, function):
        said = of_argument(sites, looked, site, given_at(site.call, name, position, default), depth)
        if said is None:
            return None
        found |= said
    return found or None


def of_argument(sites: CallSites, looked: Looked, site: Site, node: ast.expr | None, depth: int) -> Flag:
    """What an argument of a call may be, in the function around it."""
    caller = site.caller
    if node is None or isinstance(node, ast.Constant) or caller is None:
        return of_constant(node) if isinstance(node, ast.Constant) else None
    around = caller.node
    if not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    class_ = looked.flow.classes.get(caller.owner.name) if caller.owner is not None else None
    if class_ is not None:
        return flag(sites, looked, class_, around, node, depth + 1)
    if caller.owner is None and isinstance(node, ast.Name) and is_kept_parameter(around, node.id):
        return of_function(sites, looked, Function(around, around.name), node.id, depth + 1)
    return None


def of_constant(node: ast.Constant) -> Flag:
    return frozenset({node.value}) if node.value is False or node.value is None else None


# -- who else could change it -----------------------------------------------------------------------------------------


def mentions(sites: CallSites, name: str) -> Iterator[Looked]:
    return sites.files.mentioning(name)


def is_quoted(looked: Looked, name: str) -> bool:
    """Whether a name stands in a string of its own, for a registry, a setting or `setattr`; not in `__all__`."""
    text = looked.loaded.source.text
    if f'"{name}"' not in text and f"'{name}'" not in text:
        return False
    tree = looked.loaded.tree
    exported = [n for n in tree.body if isinstance(n, (ast.Assign, ast.AugAssign)) and "__all__" in names_bound(n)]
    listed = {id(n) for statement in exported for n in walk(statement)}
    return any(isinstance(n, ast.Constant) and n.value == name and id(n) not in listed for n in walk(tree))


def names_bound(statement: ast.Assign | ast.AugAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return set(map(last_name, targets))


def sets(sites: CallSites, home: Looked, class_: ClassFacts, looked: Looked, name: str) -> bool:
    """Whether a file binds an attribute on objects that may be of a class, outside the class, or names it in a string."""
    if is_quoted(looked, name):
        return True
    around = {id(node): owner for owner in classes(looked.loaded.tree) for node in walk(owner)}
    for node in names_of(looked.loaded.tree, name, (ast.Attribute,)):
        owner = around.get(id(node))
        if isinstance(node.ctx, ast.Load) or owner is class_.node:
            continue
        own = owner is not None and is_own_attribute(node, name)
        if not own or owner is None or related(sites, home, class_, owner.name):
            return True
    return False


def related(sites: CallSites, home: Looked, class_: ClassFacts, other: str) -> bool:
    """Whether a class has one of its bases' names. One that derives from it keeps its constructions from being known."""
    names = {base.name for base in lineage(class_)[1:]}
    for base in (base for each in lineage(class_) for base in each.bases if is_imported(base)):
        found = sites.files.reach.find(home.path, base)
        if found is not None and found.kind == "class":
            names |= {short for _, short in sites.files.reach.ancestors(found)}
    return other in names - _MODULE


def makes_own(call: ast.Call) -> bool:
    """Whether a call in a class makes another object of it: `cls(...)`, `type(self)(...)`, `self.__class__(...)`."""
    function = call.func
    if isinstance(function, ast.Call):
        return last_name(function.func) == "type"
    return last_name(function) in ("cls", "__class__")


def is_handed_on(sites: CallSites, looked: Looked, home: Looked, name: str, calls: list[Site]) -> bool:
    """Whether a file uses a class otherwise than by making objects: as a base, as a value."""
    tree = looked.loaded.tree
    plain = {id(site.call.func) for site in calls} | set(below_super(looked)) | set(in_types(tree))
    for node in names_of(tree, name):
        if id(node) in plain or (looked is home and not isinstance(node, ast.Name)):
            continue
        if looked is home or sites.callers.names(looked, node, home.path, name):
            return True
    return False


def in_types(tree: ast.AST) -> Iterator[int]:
    """What stands in annotations and in questions for a type, by identity."""
    for node in walk(tree):
        said: list[ast.expr | None] = []
        if isinstance(node, (ast.arg, ast.AnnAssign)):
            said = [node.annotation]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            said = [node.returns]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("isinstance", "issubclass"):
            said = [*node.args[1:]]
        for part in said:
            if part is not None:
                yield from map(id, walk(part))
