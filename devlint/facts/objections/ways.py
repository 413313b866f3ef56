"""The ways from one file of a project to another by what they import. Bounded."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import asks_name, encloses, statements, walk
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signs import runs_something

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked

HOPS = 4  # imports from a script to the checked file
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
READ = 80  # files whose imports are read to find the way


def leads_to(sites: CallSites, start: str, *goals: str) -> bool:
    """Whether a file imports one of others, or something that does, at its module level or in a function."""
    seen = {start}
    edge = [start]
    for _ in range(HOPS):
        following: list[str] = []
        for path in edge:
            for found in sorted(imported_files(sites, path, late=True)):
                if found in goals:
                    return True
                if found not in seen and len(seen) < READ:
                    seen.add(found)
                    following.append(found)
        edge = following
    return False


def programs_that_run(sites: CallSites, goal: str, name: str) -> Iterator[str]:
    """The programs that run what a file has under a name, as far as their own names show; without one, its module level.

    They ask whether they are run, or nothing imports them and they run something. A program that only imports other things of
    the file is none of them, nor one that runs it under a default device: `with torch.device("cuda"):`.
    """
    seen, edge = {(goal, name)}, [(goal, name)]
    for _ in range(HOPS * 2):
        following: list[tuple[str, str]] = []
        for path, name in edge:
            looked = sites.files.look(path)
            if looked is None:
                continue
            importing = [each for each in sites.files.importing(path) if path in imported_files(sites, each, late=True)]
            if not name:
                body = looked.loaded.tree.body
                if any(map(asks_name, body)) or (not importing and path != goal and runs_something(body)):
                    yield path
                following += [(each, "") for each in importing]
                continue
            found = [(path, *use) for use in users(looked, uses_of(looked, name))]
            for each in importing:
                following += [(each, local) for local in names_there(sites, each, name)]
                found += [(each, *use) for use in users_by_text(sites, each, path)]
            for user_path, user, is_asked in found:
                if is_asked:
                    yield user_path
                else:
                    following.append((user_path, user))
        edge = list(dict.fromkeys(each for each in following if each not in seen)) if len(seen) < READ else []
        seen.update(edge)


def uses_of(looked: Looked, name: str) -> list[ast.expr]:
    """Where a file reads a name, or an attribute of that name of anything but `self`."""
    return [node for node in looked.named(name) if isinstance(node.ctx, ast.Load) and not is_self_attribute(node)]


def users_by_text(sites: CallSites, path: str, module: str) -> Sequence[tuple[str, bool]]:
    """The `users` in a file of what a module has under whatever name: `models.__dict__[name]`, `getattr(models, name)`."""
    known = sites.users_by_text.get((path, module))
    if known is None:
        known = sites.users_by_text[path, module] = find_users_by_text(sites, path, module)
    return known


def find_users_by_text(sites: CallSites, path: str, module: str) -> Sequence[tuple[str, bool]]:
    """The same, looked for in the file."""
    looked = sites.files.look(path)
    if looked is None:
        return ()
    calls = [site.call for word in ("getattr", "vars") for site in looked.loaded.scan.calls.get(word, ())]
    asked = [
        call.args[0] for call in calls if call.args and not any(isinstance(a, ast.Constant) for a in call.args[1:2])
    ]
    asked += [node.value for node in looked.named("__dict__") if isinstance(node, ast.Attribute)]
    names = looked.loaded.imports.names
    targets = [(each, names.get(each.id)) for each in asked if isinstance(each, ast.Name)]
    uses = [each for each, target in targets if target and sites.files.reach.file_of(path, target) == module]
    return tuple(users(looked, uses))


def users(looked: Looked, uses: Sequence[ast.expr]) -> Iterator[tuple[str, bool]]:
    """The functions and classes of a file, at its module level, in which something stands; "" for its module level itself,
    with whether that is where it asks whether it is run."""
    under = under_default(looked.loaded.tree) if uses else frozenset()
    for statement in looked.loaded.tree.body:
        inside = [each for each in uses if id(each) not in under and encloses(statement, each)]
        for use in inside:
            around = (s for s in statements(statement) if isinstance(s, _DEFINED) and encloses(s, use))
            user = next((s.name for s in around), "")
            yield user, not user and asks_name(statement)


def under_default(tree: ast.Module) -> frozenset[int]:
    """The nodes, by identity, that stand under a device that is the default there: `with torch.device("cuda"):`.

    [https://docs.pytorch.org/docs/stable/tensor_attributes.html, `torch.device`: it can be used as a context manager]
    """
    found: set[int] = set()
    for node in statements(tree):
        if isinstance(node, ast.With):
            given = [item.context_expr for item in node.items]
            called = [each.func for each in given if isinstance(each, ast.Call)]
            if any(ast.unparse(each) in ("torch.device", "device") for each in called) or any(
                isinstance(each, (ast.Name, ast.Attribute)) and reads_like_device(last_name(each)) for each in given
            ):
                found |= {id(part) for part in walk(node)}
    return frozenset(found)


def names_there(sites: CallSites, path: str, name: str) -> set[str]:
    """The names under which a file that imports another may use what that one has under a name."""
    offered = sites.files.reach.exports(path)
    if offered is None:
        return set()
    found = {local for local, qualname in offered.imports.items() if qualname.rpartition(".")[2] == name}
    return found if name in offered.functions or name in offered.classes else {name, *found}


def imported_files(sites: CallSites, path: str, late: bool = False) -> Iterator[str]:
    """The files that a file imports at its module level. `late`: those that its functions import as well."""
    offered = sites.files.reach.exports(path)
    inside = offered.late if offered is not None and late else ()
    for qualname in (*offered.imports.values(), *offered.stars, *inside) if offered is not None else ():
        found = sites.files.reach.file_of(path, qualname)
        if found is not None:
            yield found
