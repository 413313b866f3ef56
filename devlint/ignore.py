"""Which paths are left out: exclude patterns of the configuration, and .gitignore files in a git work tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from devlint.gitignore import PatternList
from devlint.reading import LARGEST_SETTINGS, read_regular


class Patterns:
    """Exclude patterns, in the language of .gitignore, that are relative to `root` (absolute path)."""

    def __init__(self, root: str, patterns: Iterable[str]) -> None:
        self._root = root
        self._patterns = PatternList(patterns)

    def decide(self, path: str, is_directory: bool = False) -> bool | None:
        """What the last pattern that matches says of the last part of `path`; None when none does."""
        relative = _relative(path, self._root)
        return self._patterns.decide(os.path.basename(path) if relative is None else relative, is_directory)

    def has_entry(self, path: str, is_directory: bool) -> bool:
        """Whether the last part of `path` is excluded, its parents having been walked through."""
        return bool(self.decide(path, is_directory))

    def has(self, path: str, is_directory: bool = False) -> bool:
        """Whether a path or any directory above it, up to the root, is excluded."""
        relative = _relative(path, self._root)
        if relative is None:
            return self.has_entry(path, is_directory)
        ends = [index for index, char in enumerate(relative) if char == "/"]
        return any(self._patterns.decide(relative[:end], True) for end in ends) or bool(
            self._patterns.decide(relative, is_directory)
        )


class IgnoreFile(NamedTuple):
    """The patterns of one .gitignore file and the directory they are relative to."""

    directory: str
    patterns: PatternList


def ignored(files: Sequence[IgnoreFile], path: str, is_directory: bool) -> bool:
    """Whether git ignores `path`: the innermost file with a matching line decides. `files` go from the outside in."""
    for directory, patterns in reversed(files):
        relative = _relative(path, directory)
        if relative is not None:
            decision = patterns.decide(relative, is_directory)
            if decision is not None:
                return decision
    return False


def ignore_files_above(directory: str) -> list[IgnoreFile] | None:
    """The ignore files in force in `directory` from the directories above it; None outside a git work tree.

    A directory that is itself ignored starts afresh: whoever names it wants it checked.
    """
    if os.path.lexists(os.path.join(directory, ".git")):
        return []  # the walk itself reads what the directory holds
    above = []
    top = os.path.dirname(directory)
    while not os.path.lexists(os.path.join(top, ".git")):
        above.append(top)
        parent = os.path.dirname(top)
        if parent == top:
            return None
        top = parent
    files = repository_excludes(top)
    for inner in [top, *reversed(above)]:
        if inner != top and ignored(files, inner, True):
            return []
        files += read_ignore_file(os.path.join(inner, ".gitignore"), inner)
    return [] if ignored(files, directory, True) else files


def repository_excludes(top: str) -> list[IgnoreFile]:
    """`.git/info/exclude` of the work tree at `top`; in a linked one `.git` is a file that names the directory."""
    git = os.path.join(top, ".git")
    if os.path.isfile(git):
        git = _pointer(git, "gitdir:", top) or git
        git = _pointer(os.path.join(git, "commondir"), "", git) or git
    return read_ignore_file(os.path.join(git, "info", "exclude"), top)


def read_ignore_file(path: str, directory: str) -> list[IgnoreFile]:
    """The file at `path` as a list of one, or an empty list when it is missing, unreadable or says nothing."""
    try:
        raw = read_regular(path, LARGEST_SETTINGS)
    except OSError:
        return []
    patterns = PatternList(raw.decode("utf-8-sig", "surrogateescape").split("\n"))
    return [IgnoreFile(directory, patterns)] if patterns else []


def _pointer(path: str, opening: str, base: str) -> str | None:
    """The path that the first line of a file gives after `opening`, from `base`."""
    try:
        raw = read_regular(path, LARGEST_SETTINGS)
    except OSError:
        return None
    text = raw.partition(b"\n")[0].decode("utf-8", "surrogateescape").strip()
    return os.path.normpath(os.path.join(base, text[len(opening) :].strip())) if text.startswith(opening) else None


def _relative(path: str, root: str) -> str | None:
    """`path` below `root` with slashes, or None when it is not below it."""
    prefix = root if root.endswith(os.sep) else root + os.sep
    if not path.startswith(prefix):
        return None
    relative = path[len(prefix) :]
    return relative if os.sep == "/" else relative.replace(os.sep, "/")
