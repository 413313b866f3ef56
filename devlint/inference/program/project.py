"""The files of a project: which file an import means, and what a qualified name stands for."""

from __future__ import annotations

import ast
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from devlint.file_state import SETTLED, FileState, content_digest
from devlint.inference.program.definitions import Class, File, Function, Trail, read_file

#: Directories above an importing file in which an absolute import may start.
ABOVE = 5
#: Re-exports that one name is followed through.
HOPS = 6
_NEVER = frozenset({"torch", "numpy", "builtins", "__future__", "typing_extensions", *sys.stdlib_module_names})


class Changed(Exception):
    """A file that an earlier check of the process read is not what it was."""


class Project:
    """Files by absolute path, each read once. It serves one check, or several of one process after each other.

    `files` and `read`: what the check that goes on has looked at, and the states that its answer follows from. `looks` is
    told of each file that an answer follows from.
    """

    def __init__(self, load: Callable[[str], tuple[FileState, ast.Module | None]] | None = None) -> None:
        """`load` gives a file's state and its tree; None: other files are not read."""
        self._load = load
        self.looks: Callable[[str, File | None], None] | None = None
        self.epoch_of: Callable[[], int] | None = None
        self.files: dict[str, File | None] = {}
        self.read: dict[str, FileState] = {}
        self._kept: dict[str, tuple[FileState, File | None]] = {}
        self._checked: dict[str, File] = {}
        self._crossed: set[str] = set()  # the checked files that others look at
        self._found: dict[tuple[str, str], tuple[File | Function | Class | None, Trail]] = {}
        self._finding: set[tuple[str, str]] = set()
        self._cuts = 0  # how often something was asked for that is being found, or that is too far away
        self._own = 0  # how often the file that asks was passed over
        self._modules: dict[tuple[str, str], list[str]] = {}
        self._folders: dict[str, int | None] = {}  # when the directories were written in which modules were looked for
        self._probed: dict[str, dict[str, bool]] = {}  # by the directory: which of them were there
        self._trails: list[Trail] = []

    def begin(self) -> None:
        """A new check."""
        self.files = {}
        self.read = {}
        self._trails = []
        self._finding = set()

    def forget(self) -> None:
        """Read every file again."""
        self._kept.clear()
        self._checked.clear()
        self._crossed.clear()
        self._found.clear()
        self._modules.clear()
        self._folders.clear()
        self._probed.clear()

    def has_other_modules(self) -> bool:
        """Whether some module that was looked for is there now and was not then, or the other way round."""
        for folder, then in self._folders.items():
            now = _written(folder)
            if now != then:
                if any(os.path.isfile(path) != was_there for path, was_there in self._probed[folder].items()):
                    return True
                self._folders[folder] = now
        return False

    @property
    def size(self) -> int:
        """How many files are kept."""
        return len(self._kept) + len(self._checked)

    def tree_of(self, path: str, raw: bytes) -> ast.Module | None:
        """The tree that is kept of a file with this content."""
        state, file = self._kept.get(path, (None, None))
        if state is None or file is None or state.size != len(raw) or state.content != content_digest(raw):
            return None
        return file.tree

    def is_other(self, path: str, tree: ast.Module, alone: bool) -> bool:
        """Whether what is kept follows from a file with another tree than this one.

        `alone`: nothing is kept of a file that is checked, unless another one looks at it.
        """
        kept, checked = self._kept.get(path), self._checked.get(path)
        if kept is not None:
            return kept[1] is None or kept[1].tree is not tree
        return checked is not None and checked.tree is not tree and not (alone and path not in self._crossed)

    def add(self, path: str, tree: ast.Module) -> File:
        """A file that is parsed already."""
        path = os.path.abspath(path)
        known = self.files.get(path) or self._kept.get(path, (None, None))[1] or self._checked.get(path)
        if known is None or known.tree is not tree:
            known = read_file(path, tree, self)
        self.files[path] = self._checked[path] = known
        return known

    def file(self, path: str) -> File | None:
        """The file at a path; None where it cannot be read or parsed, or is too large.

        Raises Changed where it is not what an earlier check read.
        """
        if path not in self.files:
            self.files[path] = None
            if self._load is not None:
                self._refresh(path)
                self.read[path], self.files[path] = self._kept[path]
        elif path not in self._kept:
            self._crossed.add(path)
        file = self.files[path]
        for trail in self._trails:
            trail[path] = file
        if self.looks is not None:
            self.looks(path, file)
        return file

    def _refresh(self, path: str) -> None:
        """Keep a file as it is now."""
        known = self._kept.get(path)
        if known is not None and known[0].settled and known[0].same_metadata(FileState.of(path)):
            return
        now = self._loaded(path)
        if known is not None and known[1] is not now[1]:
            raise Changed(path)
        self._kept[path] = now

    def _loaded(self, path: str) -> tuple[FileState, File | None]:
        assert self._load is not None
        state, tree = self._load(path)
        if tree is None:
            return state, None
        for known in (self._checked.get(path), self._kept.get(path, (None, None))[1]):
            if known is not None and known.tree is tree:
                return state, known
        return state, read_file(path, tree, self)

    # -- the files that an answer follows from

    @property
    def epoch(self) -> int:
        return self.epoch_of() if self.epoch_of is not None else 0

    @contextmanager
    def followed(self) -> Iterator[Trail]:
        """The files that an answer inside follows from."""
        trail: Trail = {}
        self._trails.append(trail)
        try:
            yield trail
        finally:
            self._trails.pop()

    def look(self, trail: Trail) -> None:
        """An answer is given again that follows from these files."""
        for path in trail:
            self.file(path)

    def is_current(self, path: str, file: File | None) -> bool:
        """Whether a path means this file in the check that goes on."""
        if path in self.files:
            return self.files[path] is file
        kept = self._kept.get(path)
        return kept is not None and kept[1] is file

    # -- names

    def find(self, asker: File, name: str, hops: int = 0) -> File | Function | Class | None:
        """What a qualified name, as a file writes it, stands for in the project; None for what is not of the project."""
        if self._load is None or name.partition(".")[0] in _NEVER:
            return None
        key = (os.path.dirname(asker.path), name)
        known = self._found.get(key)
        if known is not None and asker.path not in known[1]:
            self.look(known[1])
            return known[0]
        if hops > HOPS or key in self._finding:  # a cycle of re-exports ends here
            self._cuts += 1
            return None
        cuts, own = self._cuts, self._own
        self._finding.add(key)
        try:
            with self.followed() as trail:
                found = self._find(asker, name, hops)
        finally:
            self._finding.discard(key)
        if self._own == own and (self._cuts == cuts or hops == 0) and asker.path not in trail:
            self._found[key] = found, trail
        return found

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
            there = (path for path in self._candidates(folder, dots, parts) if self._is_there(path))
            self._modules[key] = list(itertools.islice(there, 2))
        found = self._modules[key]
        self._own += asker.path in found
        return next((path for path in found if path != asker.path), None)

    def _is_there(self, path: str) -> bool:
        """Whether a module is at a path. The nearest directory above it that exists tells when that may change."""
        folder = os.path.dirname(path)
        while folder not in self._folders:
            then = _written(folder)
            if then is not None:
                self._folders[folder] = then
                self._probed[folder] = {}
                break
            folder = os.path.dirname(folder)
        found = self._probed[folder][path] = os.path.isfile(path)
        return found

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


def _written(folder: str) -> int | None:
    """When a directory was written last; None where there is none. It is now where that does not tell two changes apart."""
    try:
        written = os.stat(folder).st_mtime_ns
    except OSError:
        return None
    now = time.time_ns()
    return written if now - written >= SETTLED else now
