"""The Python files of a project as they are on disk, and which of them mention a name.

Callers of a function are looked for in these files. The text is searched first; only what mentions the name is parsed.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from devlint.reading import LARGEST_SOURCE, read_regular

FILES = 2_500  # files of one project that are searched
SIZE = 16_000_000  # bytes of all of them
ENTRIES = 20_000  # directory entries that are looked at for one project
FRESH = 1.0  # seconds for which a list of files is believed without looking again
ABOVE = 12  # directories above a file that may be the root of its project
PACKAGING = ("pyproject.toml", "setup.py", "setup.cfg")
MARKS = (".git", *PACKAGING)
IMPORT = "import "
_NEVER = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages", "build", "dist", "venv", "env"})
_TESTS = frozenset({"tests", "test", "testing", "test_utils", "unittests"})


class Search(NamedTuple):
    """What a search found: the project's directory, a digest of the list of its files, the files that mention each word.

    The directory is a path from that of the checked file, the files are paths from the directory.
    """

    root: str
    listing: str
    words: dict[str, list[str]]

    def joined(self, other: Search | None) -> Search:
        """This search and another one in the same project as one."""
        return self if other is None else self._replace(words={**self.words, **other.words})


class Files:
    """The files of one project as they were when it was listed. `listing` is a digest of their paths and states.

    `whole` is the directory of the project, which is above `root` where the bounds allow a part of it only.
    """

    def __init__(self, root: str, states: Mapping[str, tuple[int, int, int]], whole: str = "") -> None:
        self.root = root
        self.whole = whole or root
        self.states = states
        text = "\n".join(f"{size} {mtime} {inode} {path}" for path, (size, mtime, inode) in states.items())
        self.listing = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self.seen = time.monotonic()
        self._texts: dict[str, bytes] = {}
        self._found: dict[str, list[str]] = {}

    def mentioning(self, word: str) -> list[str]:
        """The files in which a name stands as a word, in the order of their paths. What cannot be read mentions nothing.

        Of "import pack.part.net" those that import that module, by a whole or relative name or one from a folder inside:
        `from .part import net`, `import net`.
        """
        found = self._found.get(word)
        if found is None:
            if not self._texts:
                self._texts = {path: _read(os.path.join(self.root, path)) for path in self.states}
            name = word.rpartition(".")[2] if word.startswith(IMPORT) else word
            raw = name.removeprefix(IMPORT).encode("utf-8", "surrogateescape")
            if word.startswith(IMPORT):
                whole = importing(word[len(IMPORT) :])
            else:
                whole = re.compile(rb"(?<!\w)" + re.escape(raw) + rb"(?!\w)")
            found = [path for path, text in self._texts.items() if raw in text and whole.search(text)]
            self._found[word] = found
        return found

    def take_over(self, older: Files) -> None:
        """Keep what was read of the same files, in the same state."""
        if older._texts:
            same = {path for path, state in self.states.items() if older.states.get(path) == state}
            self._texts = {
                path: older._texts[path] if path in same else _read(os.path.join(self.root, path))
                for path in self.states
            }


def importing(module: str) -> re.Pattern[bytes]:
    """What finds an import of a module, given by its dotted path from the root, in a text."""
    *folders, stem = (re.escape(part.encode("utf-8", "surrogateescape")) for part in module.split("."))
    ways = [rb"\.".join(folders[index:]) for index in range(len(folders))]
    around = rb"(?:" + rb"|".join(ways) + rb")" if ways else rb"(?!)"
    direct = rb"(?:from|import)[ \t]+\.*(?:" + around + rb"\.)?" + stem + rb"(?!\w)"
    listed = rb"from[ \t]+\.*(?:" + around + rb")?[ \t]+import[ \t]+(?:\([^)]*|[^(\n]*)(?<!\w)" + stem + rb"(?!\w)"
    return re.compile(rb"^[ \t]*(?:" + direct + rb"|" + listed + rb")", re.MULTILINE)


class ProjectFiles:
    """The projects that were searched lately, by directory."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[float, Files | None]] = {}
        self._roots: dict[str, list[str]] = {}

    def around(self, folder: str) -> Files | None:
        """The project that a directory (absolute) belongs to: as much of it around the directory as the bounds allow."""
        above = self._roots.get(folder)
        if above is None:
            above = self._roots[folder] = roots(folder)
        return next((files for root in reversed(above) if (files := self._files(root, above[-1])) is not None), None)

    def _files(self, root: str, whole: str) -> Files | None:
        known = self._listed.get(root)
        now = time.monotonic()
        if known is not None and now - known[0] < FRESH:
            return known[1]
        states = _list(root)
        files: Files | None = None
        if states is not None:
            files = Files(root, states, whole)
            older = known[1] if known is not None else None
            if older is not None and older.listing == files.listing:
                files = older
            elif older is not None:
                files.take_over(older)
        self._listed[root] = (now, files)
        return files


def is_installable(root: str) -> bool:
    """Whether a project is one that others can install."""
    return any(os.path.exists(os.path.join(root, name)) for name in PACKAGING)


def roots(folder: str) -> list[str]:
    """The directories that may hold a project, from that of a file up to the whole.

    The whole is the nearest directory above with a mark of a project. Without any it is the highest one up to which every
    directory is a package or holds Python files.
    """
    above = [folder]
    for _ in range(ABOVE):
        parent = os.path.dirname(above[-1])
        if parent == above[-1]:
            break
        above.append(parent)
    for index, here in enumerate(above):
        if any(os.path.exists(os.path.join(here, mark)) for mark in MARKS):
            return above[: index + 1]
    found = above[:1]
    for here in above[1:]:
        if not _holds_python(here):
            break
        found.append(here)
    return found


def _holds_python(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".py") for entry in entries)
    except OSError:
        return False


def _list(root: str) -> dict[str, tuple[int, int, int]] | None:
    """Size, time of change and inode of every Python file below a directory; None when there are too many.

    Tests, hidden directories, environments and what was built are left out: who calls a function there says little of
    what it is given in use. Links to directories are not followed.
    """
    found: dict[str, tuple[int, int, int]] = {}
    size = seen = 0
    pending = [""]
    while pending:
        way = pending.pop()
        try:
            with os.scandir(os.path.join(root, way)) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError:
            continue
        seen += len(entries)
        if seen > ENTRIES:
            return None
        if way and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        below = []
        for entry in entries:
            name = entry.name
            path = f"{way}/{name}" if way else name
            try:
                if name.endswith(".py"):
                    if name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py":
                        continue
                    if not entry.is_file():
                        continue
                    state = entry.stat()
                    found[path] = (state.st_size, state.st_mtime_ns, state.st_ino)
                    size += state.st_size
                elif "." not in name and name not in _NEVER and name not in _TESTS:
                    if entry.is_dir(follow_symlinks=False):
                        below.append(path)
            except OSError:
                continue
        pending.extend(reversed(below))
        if len(found) > FILES or size > SIZE:
            return None
    return found


def _read(path: str) -> bytes:
    try:
        return read_regular(path, LARGEST_SOURCE)
    except OSError:
        return b""
