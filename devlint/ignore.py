"""Which paths are left out: exclude patterns of the configuration, and .gitignore files in a git work tree.

All patterns are .gitignore patterns. pathspec is imported only when a pattern is more than a plain name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from devlint.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class Patterns:
    """Exclude patterns that are relative to `root` (absolute path)."""

    def __init__(self, root: str, patterns: Iterable[str], where: str = "") -> None:
        rows = list(patterns)
        self._root = root
        self._names = {row for row in rows if _is_plain(row)}
        others = [row for row in rows if not _is_plain(row)]
        self._spec = _spec(others, where) if others else None

    def has_entry(self, path: str, is_directory: bool) -> bool:
        """Whether the last part of `path` is excluded, its parents having been walked through."""
        if os.path.basename(path) in self._names:
            return True
        return self._spec is not None and self._matches(self._spec, path, is_directory)

    def has(self, path: str) -> bool:
        """Whether a file or any directory above it, up to the root, is excluded."""
        relative = _relative(path, self._root)
        if relative is None:
            return self.has_entry(path, False)
        if not self._names.isdisjoint(relative.split("/")):
            return True
        return self._spec is not None and self._matches(self._spec, path, False)

    def _matches(self, spec: GitIgnoreSpec, path: str, is_directory: bool) -> bool:
        relative = _relative(path, self._root)
        if relative is None:
            relative = os.path.basename(path)
        return bool(spec.match_file(relative + "/" * is_directory))


class IgnoreFile(NamedTuple):
    """The patterns of one .gitignore file and the directory they are relative to."""

    directory: str
    spec: GitIgnoreSpec


def ignored(files: Sequence[IgnoreFile], path: str, is_directory: bool) -> bool:
    """Whether git ignores `path`: the innermost file with a matching line decides. `files` go from the outside in."""
    for directory, spec in reversed(files):
        relative = _relative(path, directory)
        if relative is not None:
            include = spec.check_file(relative + "/" * is_directory).include
            if include is not None:
                return include
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
        common = os.path.join(git, "commondir")
        git = _pointer(common, "", git) or git
    return read_ignore_file(os.path.join(git, "info", "exclude"), top)


def read_ignore_file(path: str, directory: str) -> list[IgnoreFile]:
    """The file at `path` as a list of one, or an empty list when it is missing, unreadable or says nothing."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for line in file]
    except OSError:
        return []
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if not lines:
        return []
    try:
        return [IgnoreFile(directory, _spec(lines, path))]
    except UsageError:
        return [IgnoreFile(directory, _spec([line for line in lines if _is_valid(line)], path))]


def _pointer(path: str, opening: str, base: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.readline().strip()
    except OSError:
        return None
    return os.path.normpath(os.path.join(base, text[len(opening) :].strip())) if text.startswith(opening) else None


def _is_plain(pattern: str) -> bool:
    return bool(pattern) and not any(char in pattern for char in "*?[]!#/\\ ")


def _is_valid(line: str) -> bool:
    try:
        _spec([line], "")
    except UsageError:
        return False
    return True


def _spec(lines: Sequence[str], where: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        opening = f"{where}: " if where else ""
        raise UsageError(f"{opening}bad exclude pattern: {error}") from None


def _relative(path: str, root: str) -> str | None:
    """`path` below `root` with slashes, or None when it is not below it."""
    prefix = root if root.endswith(os.sep) else root + os.sep
    if not path.startswith(prefix):
        return None
    relative = path[len(prefix) :]
    return relative if os.sep == "/" else relative.replace(os.sep, "/")
