"""The files of the project around a checked one: which mention a name, each with an interpreter for it. Bounded."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from devlint.facts.calling.listener import Listener
from devlint.facts.project.project import Loaded, Reach
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.project_files import IMPORT, Files, Search, is_installable

CANDIDATES = 10  # other files that are read for one function
LOADED = 24  # other files that are read for one checked file


@dataclass(slots=True, eq=False)
class Looked:
    """A file in which calls are looked at, with its interpreter."""

    path: str  # absolute
    loaded: Loaded
    flow: Listener
    module_ran: bool = False
    _names: dict[str, list[ast.Name | ast.Attribute]] = field(default_factory=dict)

    def named(self, name: str) -> list[ast.Name | ast.Attribute]:
        """The names and attributes of the file that read like a name, which are collected once."""
        if not self._names:
            for node in walk(self.loaded.tree):
                if isinstance(node, (ast.Name, ast.Attribute)):
                    self._names.setdefault(last_name(node), []).append(node)
        return self._names.get(name, [])


Make = Callable[[Loaded, Reach], Listener]


class Neighbours:
    """Looks into files for one checked file. `words`: the names that were looked for, with the files that mention them."""

    def __init__(self, path: str, loaded: Loaded, reach: Reach, make: Make) -> None:
        self.path = path
        self.reach = reach
        self.words: dict[str, list[str]] = {}
        self._listed: Files | None = None
        self._make = make
        self._own = loaded
        self._looked: dict[str, Looked | None] = {}
        self._is_searched = False

    def look(self, path: str) -> Looked | None:
        """A file with an interpreter for it; None when it cannot be read, or the bounds are reached."""
        if path not in self._looked and len(self._looked) <= LOADED:
            loaded: Loaded | None = self._own
            if path != self.path:
                self.reach.read[path], loaded = self.reach.project.load(path)
            self._looked[path] = Looked(path, loaded, self._make(loaded, self.reach)) if loaded is not None else None
        return self._looked.get(path)

    def mentioning(self, word: str) -> Iterator[Looked]:
        """The files of the project that mention a name, the checked one first."""
        own = self.look(self.path)
        if own is not None:
            yield own
            yield from self.candidates(own, word)

    def mentioned_in(self, word: str) -> list[str]:
        """The other files of the project that mention a name, as absolute paths."""
        files = self._searched()
        if files is None:
            return []
        paths = (os.path.normpath(os.path.join(files.root, way)) for way in self._mentions(files, word))
        return [path for path in paths if path != self.path]

    @property
    def way(self) -> str:
        """The path of the checked file from the root of its project."""
        return os.path.relpath(self.path, self.root or os.path.dirname(self.path))

    @property
    def is_imported(self) -> bool:
        """Whether another file of the project imports the checked one, as far as its text shows."""
        module = os.path.splitext(self.way)[0].replace(os.sep, ".").removesuffix(".__init__")
        return bool(self.mentioned_in(IMPORT + module))

    def importing(self, path: str) -> list[str]:
        """The other files of the project that import a file, as far as their text shows."""
        files = self._searched()
        if files is None:
            return []
        way = os.path.splitext(os.path.relpath(path, files.root))[0].replace(os.sep, ".").removesuffix(".__init__")
        paths = (os.path.normpath(os.path.join(files.root, each)) for each in self._mentions(files, IMPORT + way))
        return [each for each in paths if each != path]

    def reads_all(self, word: str) -> bool:
        """Whether all files of the project that mention a name are among those that `mentioning` gives."""
        files = self._searched()
        return files is not None and files.root == files.whole and len(self.mentioned_in(word)) <= CANDIDATES

    def candidates(self, home: Looked, word: str) -> list[Looked]:
        """The other files of the project that mention a name, the likeliest first."""
        files = self._searched()
        if files is None or word.startswith("__"):
            return []
        mentioned = self._mentions(files, word)
        paths = [os.path.normpath(os.path.join(files.root, way)) for way in mentioned]
        near = os.path.dirname(home.path)
        paths.sort(key=lambda path: (-len(os.path.commonpath([os.path.dirname(path), near])), path))
        found = []
        for path in [p for p in paths if p not in (home.path, self.path)][:CANDIDATES]:
            looked = self.look(path)
            if looked is not None:
                found.append(looked)
        if home.path != self.path and self.path in paths:
            own = self.look(self.path)
            found += [own] if own is not None else []
        return found

    def _searched(self) -> Files | None:
        """The files of the project, listed when they are asked for."""
        if not self._is_searched:
            self._is_searched = True
            self._listed = self.reach.project.files.around(os.path.dirname(self.path))
        return self._listed

    def _mentions(self, files: Files, word: str) -> list[str]:
        """The files in which a name stands; what was looked for is remembered."""
        if word not in self.words:
            self.words[word] = files.mentioning(word)
        return self.words[word]

    @property
    def root(self) -> str:
        """The project's folder; empty when there is none."""
        files = self._searched()
        return files.root if files is not None else ""

    @property
    def is_closed(self) -> bool:
        """Whether the project is a program of its own: nothing says that others install it."""
        files = self._searched()
        return files is not None and not is_installable(files.whole)

    def place(self, path: str, qualname: str) -> tuple[str, str] | None:
        """The file, and the name in it, of the function or class that a qualified name in a file leads to."""
        found = self.reach.find(path, qualname)
        return (found.path, found.short) if found is not None and found.kind in ("function", "class") else None

    def is_imported_from_project(self, looked: Looked, start: ast.expr) -> bool:
        """Whether what an expression starts with is imported from a file of the project."""
        target = looked.loaded.imports.names.get(last_name(start))
        return target is not None and self.reach.file_of(looked.path, target) is not None

    def search(self) -> Search | None:
        """What was looked for in the files of the project; None when nothing was."""
        if self._listed is None:
            return None
        root = os.path.relpath(self._listed.root, os.path.dirname(self.path))
        return Search(root, self._listed.listing, dict(self.words))
