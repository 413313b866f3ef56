"""Who calls a function of a file, in the file itself and in the others of its project: by imports, instances and bases."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import partial

from devlint.facts.calling.neighbours import CANDIDATES, Looked, Neighbours
from devlint.facts.project.project import is_imported
from devlint.facts.text.callers import itself
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.defined import Function
from devlint.facts.text.indirect import indirect_calls
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name, with_aliases
from devlint.facts.text.scan import Site
from devlint.facts.text.signatures import positional_names
from devlint.facts.text.signs import prepares_data


class WhoCalls:
    """Finds calls in a checked file and its neighbours."""

    def __init__(self, files: Neighbours) -> None:
        self._files = files
        self._made: dict[tuple[str, str, str], set[str]] = {}  # see `_instances`

    def sites(self, home: Looked, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls of a function, in its own file and in the others."""
        for site in home.flow.callers.sites(function):
            yield home, site
        owner = function.owner
        is_method = function.is_method
        if owner is not None and not is_method:
            return
        name = function.name.rsplit(".", 1)[-1]
        if "." in function.name and owner is None:
            return  # a nested function
        if owner is None:
            for site in indirect_calls(home.loaded.scan, name):
                yield home, site
            for looked in self._files.candidates(home, name):
                yield from ((looked, site) for site in self.calls_of(looked, home.path, name))
                for site in indirect_calls(looked.loaded.scan, name):
                    if self.names(looked, site.call.func, home.path, name):
                        yield looked, site
            return
        yield from self._calls_of_template(home, owner, name)
        if is_method and owner.is_module and name == "forward":
            name = "__call__"
        for looked in self._files.candidates(home, owner.name):
            yield from ((looked, site) for site in self._calls_of_method(looked, home.path, owner, name))

    def calls_of(self, looked: Looked, path: str, name: str) -> Iterator[Site]:
        """The calls, in one file, of what another file defines under a name at module level."""
        for local in self._locals(looked, path, name):
            for site in looked.loaded.scan.calls.get(local, ()):
                if isinstance(site.call.func, ast.Name):
                    yield site
        for site in looked.loaded.scan.calls.get(name, ()):
            if isinstance(site.call.func, ast.Attribute) and self.names(looked, site.call.func, path, name):
                yield site

    def _calls_of_template(self, home: Looked, owner: ClassFacts, name: str) -> Iterator[tuple[Looked, Site]]:
        """The calls of a method on `self` in the bases of its class that other files define."""
        for base in (base for each in lineage(owner) for base in each.bases if is_imported(base)):
            found = self._files.reach.find(home.path, base)
            for path, class_name in (
                self._files.reach.ancestors(found) if found is not None and found.kind == "class" else ()
            ):
                if path == home.path or prepares_data(path):
                    continue  # what a file is for by its name is no answer for subclasses elsewhere
                looked = self._files.look(path)
                for site in looked.loaded.scan.calls.get(name, ()) if looked is not None else ():
                    receiver = getattr(site.call.func, "value", None)
                    inside = site.caller.owner if site.caller is not None else None
                    if getattr(receiver, "id", "") == "self" and inside is not None and inside.name == class_name:
                        assert looked is not None
                        yield looked, site

    def _calls_of_method(self, looked: Looked, path: str, owner: ClassFacts, name: str) -> Iterator[Site]:
        """The calls, in one file, of a method of a class that another one defines."""
        calls = looked.loaded.scan.calls
        if name == "__init__":
            yield from self.calls_of(looked, path, owner.name)
            return
        objects = self._instances(looked, path, owner.name)
        if name == "__call__":
            for made in objects:
                yield from calls.get(made, ())
            return
        classes = self._locals(looked, path, owner.name)
        for site in calls.get(name, ()):
            target = site.call.func
            if not isinstance(target, ast.Attribute):
                continue
            receiver = target.value.id if isinstance(target.value, ast.Name) else getattr(target.value, "attr", "")
            if receiver in ("self", "cls"):
                inside = site.caller.owner if site.caller is not None else None
                if inside is not None and self.derives(looked, inside, path, owner.name):
                    yield site
            elif receiver in objects or receiver in classes:
                yield site

    def calls_on_objects(self, home: Looked, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls of a method on whatever object, if all methods of that name in the project take the same arguments."""
        short = function.name.rsplit(".", 1)[-1]
        if short.startswith("__") or short == "forward":
            return
        files = [home, *self._files.candidates(home, short)]
        if len(files) > CANDIDATES:
            return
        wanted = plain_names(function.node)
        for looked in files:
            for node in looked.loaded.scan.functions.values():
                if getattr(node.node, "name", "") == short and plain_names(node.node) != wanted:
                    return
        for looked in files:
            imported = looked.loaded.imports.names
            for site in looked.loaded.scan.calls.get(short, ()):
                target = site.call.func
                receiver = target.value if isinstance(target, ast.Attribute) else None
                if receiver is None or (isinstance(receiver, ast.Name) and receiver.id in {"self", "cls", *imported}):
                    continue
                yield looked, site

    def is_run_by_loading(self, home: Looked, function: Function) -> bool:
        """Whether a function, or an object that it is the call of, is handed to what applies it to items of data sets."""
        name = function.name.rsplit(".", 1)[-1]
        owner = function.owner
        if owner is not None and name not in ("__call__", "forward"):
            return False
        wanted = owner.name if owner is not None else name
        if owner is None and "." in function.name:
            return False
        names = {wanted} | (home.flow.callers.instances(wanted) if owner is not None else set())
        if _is_among(home.loaded.for_loading, names):
            return True
        for looked in self._files.candidates(home, wanted):
            made = self._instances(looked, home.path, wanted) if owner is not None else set()
            named = partial(self.names, looked, path=home.path, name=wanted)
            if any(map(named, looked.loaded.for_loading)) or _is_among(looked.loaded.for_loading, made):
                return True
        return False

    def derives(self, looked: Looked, class_: ast.ClassDef, path: str, name: str) -> bool:
        """Whether a class of a file derives from a class of another one."""
        facts = looked.flow.classes.get(class_.name)
        bases = [base for each in lineage(facts) for base in each.bases] if facts is not None else []
        found = [self._files.reach.find(looked.path, base) for base in bases if is_imported(base)]
        return any(
            (path, name) in self._files.reach.ancestors(base)
            for base in found
            if base is not None and base.kind == "class"
        )

    def objects(self, looked: Looked, home: Looked, class_name: str) -> set[str]:
        """The last names that a file gives to objects of a class of another file, or of its own."""
        if looked.path == home.path:
            return home.flow.callers.instances(class_name)
        return self._instances(looked, home.path, class_name)

    def _instances(self, looked: Looked, path: str, class_name: str) -> set[str]:
        """The last names that objects of a class of another file are bound to in a file, looked for once."""
        key = (looked.path, path, class_name)
        if key not in self._made:
            self._made[key] = self._bound_in(looked, path, class_name)
        return self._made[key]

    def _bound_in(self, looked: Looked, path: str, class_name: str) -> set[str]:
        made = {id(site.call) for site in self.calls_of(looked, path, class_name)}
        found: set[str] = set()
        for node in walk(looked.loaded.tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and id(itself(node.value)) in made:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= set(map(last_name, targets))
            elif isinstance(node, ast.arg) and node.annotation is not None:
                if any(self.names(looked, part, path, class_name) for part in classes_in(node.annotation)):
                    found.add(node.arg)
        return with_aliases(looked.loaded.tree, found - {""})

    def _locals(self, looked: Looked, path: str, name: str) -> set[str]:
        """What a file calls something that another file defines at module level."""
        imports = looked.loaded.imports
        found = {
            local
            for local, target in imports.names.items()
            if (target.rsplit(".", 1)[-1] == name or local == name)
            and self._files.place(looked.path, target) == (path, name)
        }
        if name not in imports.names and name in looked.loaded.scan.handed | looked.loaded.scan.calls.keys():
            if any(self._files.place(looked.path, f"{star}.{name}") == (path, name) for star in imports.stars):
                found.add(name)
        return found

    def names(self, looked: Looked, node: ast.expr, path: str, name: str) -> bool:
        """Whether an expression names what another file defines at module level."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        if not parts:
            return node.id in self._locals(looked, path, name)
        target = looked.loaded.imports.names.get(node.id)
        return target is not None and self._files.place(looked.path, ".".join([target, *reversed(parts)])) == (
            path,
            name,
        )


def classes_in(annotation: ast.expr) -> list[ast.expr]:
    """The names in an annotation that may be classes: both of `Depth | Canny`, that of `Optional[Depth]`."""
    return [node for node in walk(annotation) if isinstance(node, (ast.Name, ast.Attribute))]


def plain_names(node: ast.AST) -> list[str]:
    """The names of a function's parameters that may be given by position."""
    spec = getattr(node, "args", None)
    return positional_names(spec) if isinstance(spec, ast.arguments) else []


def _is_among(parts: Iterable[ast.expr], names: set[str]) -> bool:
    """Whether one of some expressions is one of some names."""
    return any(isinstance(part, ast.Name) and part.id in names for part in parts)
