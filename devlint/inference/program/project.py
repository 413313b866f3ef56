"""The files of a project: which file an import means, and what a qualified name stands for."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterable

from devlint.file_state import FileState
from devlint.inference.program.definitions import Class, File, Function, read_file

#: Directories above an importing file in which an absolute import may start.
ABOVE = 5
#: Re-exports that one name is followed through.
HOPS = 6
_NEVER = frozenset({"torch", "numpy", "builtins", "__future__", "typing_extensions", *sys.stdlib_module_names})


class Project:
    """Files by absolute path, each read once. `read` holds the state of every path that an answer follows from."""

    def __init__(self, load: Callable[[str], tuple[FileState, ast.Module | None]] | None = None) -> None:
        """`load` gives a file's state and its tree; None: other files are not read."""
        self._load = load
        self.files: dict[str, File | None] = {}
        self.read: dict[str, FileState] = {}
        self._found: dict[tuple[str, str], File | Function | Class | None] = {}
        self._modules: dict[tuple[str, str], str | None] = {}

    def add(self, path: str, tree: ast.Module) -> File:
        """A file that is parsed already."""
        path = os.path.abspath(path)
        known = self.files.get(path)
        if known is not None and known.tree is tree:
            return known
        file = self.files[path] = read_file(path, tree, self)
        return file

    def file(self, path: str) -> File | None:
        """The file at a path; None where it cannot be read or parsed, or is too large."""
        if path not in self.files:
            self.files[path] = None
            if self._load is not None:
                self.read[path], tree = self._load(path)
                self.files[path] = read_file(path, tree, self) if tree is not None else None
        return self.files[path]

    def find(self, asker: File, name: str, hops: int = 0) -> File | Function | Class | None:
        """What a qualified name, as a file writes it, stands for in the project; None for what is not of the project."""
        if self._load is None or hops > HOPS or name.partition(".")[0] in _NEVER:
            return None
        key = (os.path.dirname(asker.path), name)
        if key not in self._found:
            self._found[key] = None  # a cycle of re-exports ends here
            self._found[key] = self._find(asker, name, hops)
        return self._found[key]

    def _find(self, asker: File, name: str, hops: int) -> File | Function | Class | None:
        dots = len(name) - len(name.lstrip("."))
        parts = [part for part in name[dots:].split(".") if part]
        for length in range(len(parts), -1, -1):
            path = self._module(asker, dots, tuple(parts[:length])) if dots or length else None
            if path is None:
                continue
            if length == len(parts):
                return self.file(path)
            if len(parts) - length > 2:
                return None
            file = self.file(path)
            return self._inside(file, parts[length:], hops) if file is not None else None
        return None

    def _inside(self, file: File, rest: list[str], hops: int) -> File | Function | Class | None:
        """A name of a file, or a method of a class there."""
        first = rest[0]
        if first in file.classes:
            class_ = file.classes[first]
            return class_ if len(rest) == 1 else class_.method(rest[1]) or class_.class_inside(rest[1])
        if first in file.functions:
            return file.functions[first] if len(rest) == 1 else None
        target = file.imports.get(first)
        if target is not None:
            return self.find(file, ".".join([target, *rest[1:]]), hops + 1)
        for star in file.stars:
            found = self.find(
                file,
                ".".join([star.rstrip(".") or star, *rest]) if star.strip(".") else star + ".".join(rest),
                hops + 1,
            )
            if found is not None:
                return found
        return None

    def _module(self, asker: File, dots: int, parts: tuple[str, ...]) -> str | None:
        folder = os.path.dirname(asker.path)
        key = (folder, "." * dots + ".".join(parts))
        if key not in self._modules:
            self._modules[key] = next(
                (path for path in self._candidates(folder, dots, parts) if path != asker.path and os.path.isfile(path)),
                None,
            )
        return self._modules[key]

    def _candidates(self, folder: str, dots: int, parts: tuple[str, ...]) -> Iterable[str]:
        starts = [folder]
        if dots:
            for _ in range(dots - 1):
                starts = [os.path.dirname(starts[0])]
        else:
            for _ in range(ABOVE):
                starts.append(os.path.dirname(starts[-1]))
        for start in starts:
            base = os.path.join(start, *parts)
            yield os.path.join(base, "__init__.py")
            if parts:
                yield base + ".py"
