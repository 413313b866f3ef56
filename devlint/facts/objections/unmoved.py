"""Modules that no code of the project moves: their parameters, and what they are given, stay on the host.

Asked before a finding in a module's method is reported. The calls that make objects of the class are looked for in the
whole project; where one of them moves its object, or hands it on to where that cannot be seen, nothing is concluded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from devlint.facts.idioms.kept_modules import reads_all_at_once
from devlint.facts.idioms.placed import goes_back
from devlint.facts.project.project import PLAIN_BASES
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.method_names import OFF_HOST_MODULE
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import chain, is_self, is_self_attribute, last_name
from devlint.facts.text.scan import Site
from devlint.facts.text.signatures import positional_names
from devlint.facts.text.signs import moves
from devlint.facts.values import ACCELERATORS

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked
    from devlint.facts.events import Meet

_MOVING = OFF_HOST_MODULE | {"share_memory"}
HOLDERS = 3  # modules that hold the next one
Kinds: TypeAlias = tuple[type[ast.expr], ...]
NAMES: Kinds = (ast.Name, ast.Attribute)


def is_never_moved(sites: CallSites, function: str) -> bool:
    """Whether the method with this qualified name is one of a module that the project makes and never moves."""
    class_ = sites.class_of(function)
    own = next(sites.files.mentioning(class_.name), None) if class_ is not None else None
    if class_ is None or own is None or not class_.is_module:
        return False
    if any(moves_own_state(each) or stays_on_cpu(each) for each in lineage(class_)):
        return True
    if not sites.files.is_closed:
        return False  # who installs it may move it
    return stays(sites, own, class_, 0)


def is_moved_by_holder(sites: CallSites, event: Meet) -> bool:
    """Whether another file of the project may move a module that an object, no module itself, has made for itself.

    A base of the class that the project does not have may move it, too. Not of one that the object itself takes to the CPU.
    """
    off = event.off
    if (
        off.value.moved
        or off.value.kind != "module"
        or not isinstance(off.node, ast.Attribute)
        or last_name(off.node.value) != "self"
    ):
        return False
    class_ = sites.class_of(event.function)
    if class_ is None or class_.is_module:
        return False
    if any(may_move_all(sites, base) for each in lineage(class_) for base in far_bases(each)):
        return True
    name, own = off.node.attr, sites.files.look(sites.path)
    others = (each for each in sites.files.mentioning(name) if each is not own)
    return not sites.files.reads_all(name) or not all(
        is_kept_in(sites, each.loaded.tree, name, (ast.Attribute,)) for each in others
    )


def far_bases(class_: ClassFacts) -> list[str]:
    """The bases of a class that its own file does not have and that may do something."""
    near = {base.name for base in class_.local_bases}
    return [base for base in class_.bases if base not in near and base not in PLAIN_BASES]


def may_move_all(sites: CallSites, base: str) -> bool:
    """Whether a base may move what a class derived from it keeps: it is not the project's, or reads all attributes at once."""
    reach = sites.files.reach
    found = reach.find(sites.path, base)
    if found is None or found.kind != "class" or not reach.is_plain(found):
        return True
    looked = [sites.files.look(path) for path, _ in reach.ancestors(found)]
    return any(each is None or reads_all_at_once(each.loaded.source.text) for each in looked)


def moves_own_state(class_: ClassFacts) -> bool:
    """Whether a method moves a buffer of its own for a use, as only a module does that stays where it is.

    `F.conv1d(x.cuda(), self.basis.cuda()).cpu()`; not `self.basis.to(x.device)`, which is right wherever it is.
    """
    for method in class_.methods.values():
        for node in walk(method):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ACCELERATORS:
                parts = (n for n in walk(node.func.value) if is_self_attribute(n))
                if any(isinstance(n, ast.Attribute) and class_.has_buffer(n.attr) for n in parts):
                    return True
    return False


def stays_on_cpu(class_: ClassFacts) -> bool:
    """Whether a constructor puts its module on the CPU in so many words: `self.to(torch.device("cpu"))`, `self.cpu()`."""
    init = class_.methods.get("__init__")
    for node in walk(init) if init is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_self(node.func.value):
            if goes_back(node):
                return True
    return False


def stays(sites: CallSites, home: Looked, class_: ClassFacts, depth: int) -> bool:
    """Whether the project makes objects of a class, and every one of them stays where it was made."""
    if depth > HOLDERS or class_.node.decorator_list or not sites.files.reads_all(class_.name):
        return False
    made = False
    for looked in sites.files.mentioning(class_.name):
        tree = looked.loaded.tree
        if is_base(tree, class_.name) or is_in_text(looked, class_.name):
            return False
        calls = list(sites.made(looked, home, class_.name))
        plain = {id(site.call.func) for site in calls} | set(below_super(looked))
        if any(id(node) not in plain for node in looked.named(class_.name) if not is_self_attribute(node)):
            return False  # handed on as a class
        made = made or bool(calls)
        if not all(object_stays(sites, looked, site, depth) for site in calls):
            return False
    return made


def object_stays(sites: CallSites, looked: Looked, site: Site, depth: int) -> bool:
    """Whether what a call makes is bound to one name, and nothing moves or hands on what has the name."""
    tree = looked.loaded.tree
    bound = next((n for n in walk(tree) if isinstance(n, ast.Assign) and n.value is site.call), None)
    if bound is None or len(bound.targets) != 1:
        return False
    target = bound.targets[0]
    if isinstance(target, ast.Name):
        inside = site.caller.node if site.caller is not None else None
        return is_kept_in(sites, inside, target.id) if inside is not None else is_kept(sites, target.id)
    if not isinstance(target, ast.Attribute) or last_name(target.value) != "self":
        return False
    owner = site.caller.owner if site.caller is not None else None
    holder = looked.flow.classes.get(owner.name) if owner is not None else None
    if holder is None or not is_kept(sites, target.attr, (ast.Attribute,)):
        return False
    return stays(sites, looked, holder, depth + 1) if holder.is_module else not _MOVING & holder.methods.keys()


def is_kept(sites: CallSites, name: str, kinds: Kinds = NAMES) -> bool:
    """Whether no file of the project moves or hands on what has the name."""
    return sites.files.reads_all(name) and all(
        is_kept_in(sites, looked.loaded.tree, name, kinds) for looked in sites.files.mentioning(name)
    )


def is_kept_in(sites: CallSites, tree: ast.AST, name: str, kinds: Kinds = NAMES, depth: int = 0) -> bool:
    """Whether a tree only calls what has the name, or its methods, and moves it nowhere.

    It may be handed to functions of the project that do no more.
    """
    used: set[int] = set()
    handed: list[tuple[ast.Call, int | str]] = []
    for node in walk(tree):
        if isinstance(node, ast.Call):
            if moves(node) and any(last_name(p) == name and isinstance(p, kinds) for p in chain(node.func)):
                return False
            used.add(id(node.func))
            passed: dict[int | str, ast.expr] = {
                **dict(enumerate(node.args)),
                **{k.arg or "": k.value for k in node.keywords},
            }
            for key, argument in passed.items():
                if last_name(argument) == name and isinstance(argument, kinds):
                    used.add(id(argument))
                    handed.append((node, key))
        elif isinstance(node, ast.Attribute):
            used.add(id(node.value))
    if not all(id(node) in used for node in names_of(tree, name, kinds) if isinstance(node.ctx, ast.Load)):
        return False
    return all(is_kept_by(sites, call, key, depth + 1) for call, key in handed)


def is_kept_by(sites: CallSites, call: ast.Call, key: int | str, depth: int) -> bool:
    """Whether every function of the project that a call may mean keeps an argument, by its position or name."""
    name = last_name(call.func)
    if depth > HOLDERS or not name or (not key and isinstance(key, str)) or not sites.files.reads_all(name):
        return False
    found = [
        node
        for looked in sites.files.mentioning(name)
        for node in walk(looked.loaded.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name
    ]
    for node in found:
        plain = positional_names(node.args)
        if isinstance(key, int):
            if plain[:1] == ["self"]:
                plain = plain[1:]
            if key >= len(plain):
                return False
        parameter = key if isinstance(key, str) else plain[key]
        if not is_kept_in(sites, node, parameter, NAMES, depth):
            return False
    return bool(found)


def names_of(tree: ast.AST, name: str, kinds: Kinds = NAMES) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes of a tree that read like a name."""
    for node in walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node, kinds) and last_name(node) == name:
            yield node


def is_base(tree: ast.AST, name: str) -> bool:
    """Whether a class of the tree derives from what has the name."""
    classes = (node for node in statements(tree) if isinstance(node, ast.ClassDef))
    return any(last_name(base) == name for class_ in classes for base in class_.bases)


def is_in_text(looked: Looked, name: str) -> bool:
    """Whether a name stands in a string of its own, for a registry or an import by name."""
    text = looked.loaded.source.text
    return f'"{name}"' in text or f"'{name}'" in text


def below_super(looked: Looked) -> Iterator[int]:
    """The arguments of `super(STFT, self)` in a file, by identity."""
    for site in looked.loaded.scan.calls.get("super", ()):
        yield from map(id, site.call.args)
