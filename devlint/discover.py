"""Finds the files to check: walks directories without what is excluded or ignored, keeps what is named explicitly."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from devlint.config import DEFAULT_INCLUDE, Config, Resolver
from devlint.ignore import (
    IgnoreFile,
    Patterns,
    ignore_files_above,
    ignored,
    read_ignore_file,
    repository_excludes,
)
from devlint.reading import is_regular

SUFFIXES = tuple(pattern[1:] for pattern in DEFAULT_INCLUDE)
_ENDING = re.compile(r"\*\.[\w.]+\Z")


@dataclass(frozen=True, slots=True)
class Target:
    """One file to check. `name` is how reports call it: relative to the current directory when it lies below it.

    `left`: the tree that a link leaves to get to the file, which nothing is written to.
    """

    path: str
    name: str
    config: Config
    left: str | None = None


Kind = Literal["directory", "file", "link"]


class _Entry(NamedTuple):
    """What a walk goes on to, with the ignore files in force there."""

    path: str
    kind: Kind
    files: list[IgnoreFile] | None


@dataclass(slots=True)
class Found:
    """The files to check in order, and one message for each path that is missing or cannot be read."""

    targets: list[Target] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)  # named on the command line, left out by --force-exclude


class Finder:
    """One search. `exclude` replaces, `extend_exclude` extends that of the configuration; from the command line.

    `more`: endings of files that are checked in directories whatever `include` says.
    """

    def __init__(
        self,
        resolver: Resolver,
        force_exclude: bool | None = None,
        exclude: Sequence[str] | None = None,
        extend_exclude: Sequence[str] | None = None,
        more: tuple[str, ...] = (),
    ) -> None:
        self._resolver = resolver
        self._force_exclude = force_exclude
        self._exclude = exclude
        self._extend_exclude = extend_exclude
        self._more = more
        self._here = os.getcwd()
        self._patterns: dict[int, tuple[Config, list[Patterns]]] = {}
        self._includes: dict[int, tuple[Config, Includes]] = {}
        self._seen: set[str] = set()
        self._found = Found()

    def find(self, paths: Iterable[str]) -> Found:
        """Everything below `paths` in order, directories sorted by name. Raises UsageError for a bad configuration."""
        for given in paths:
            path = os.path.normpath(os.path.join(self._here, given))
            if not os.path.exists(path):
                self._found.problems.append(f"{given}: {_why_missing(path)}")
            elif self._is_forced_out(path):
                self._found.excluded.append(given)
            elif os.path.isdir(path):
                self._walk(path)
            elif is_regular(path):
                self._add(path, _left_by(path, [_tree(os.path.dirname(path))]) if os.path.islink(path) else None)
            else:
                self._found.problems.append(f"{given}: no regular file; `-` reads standard input")
        return self._found

    def followed(self, path: str) -> Target | None:
        """A file (absolute) that another one leads to; None where the exclude patterns leave it out."""
        if self.is_excluded(path) or not is_regular(path):
            return None
        return Target(path, self._name(path), self._resolver.for_directory(os.path.dirname(path)))

    def config_for(self, path: str) -> Config:
        """The configuration of a file or directory, which need not exist."""
        absolute = os.path.normpath(os.path.join(self._here, path))
        return self._resolver.for_directory(absolute if os.path.isdir(absolute) else os.path.dirname(absolute))

    def is_forced_out(self, path: str) -> bool:
        """Whether --force-exclude leaves this path out."""
        return self._is_forced_out(os.path.normpath(os.path.join(self._here, path)))

    def is_excluded(self, path: str) -> bool:
        """Whether the exclude patterns leave this file out of a directory."""
        absolute = os.path.normpath(os.path.join(self._here, path))
        config = self._resolver.for_directory(os.path.dirname(absolute))
        return any(patterns.has(absolute) for patterns in self._patterns_of(config))

    def _is_forced_out(self, path: str) -> bool:
        config = self._resolver.for_directory(os.path.dirname(path))
        force = config.force_exclude if self._force_exclude is None else self._force_exclude
        return force and any(patterns.has(path, os.path.isdir(path)) for patterns in self._patterns_of(config))

    def _walk(self, top: str) -> None:
        trees = [top, _tree(top)]
        pending = [_Entry(top, "directory", ignore_files_above(top))]
        while pending:  # directories may lie thousands deep
            path, kind, files = pending.pop()
            if kind == "directory":
                pending.extend(reversed(self._entries(path, files)))
            elif kind == "link":
                self._add(os.path.realpath(path), _left_by(path, trees))
            else:
                self._add(path)

    def _entries(self, directory: str, files: list[IgnoreFile] | None) -> list[_Entry]:
        """What to check in a directory, in order: files, and directories with the ignore files in force in them."""
        try:
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            self._found.problems.append(f"{self._name(directory)}: cannot read directory: {error.strerror or error}")
            return []
        names = {entry.name for entry in entries}
        if ".git" in names:
            files = repository_excludes(directory)
        if files is not None and ".gitignore" in names:
            files = [*files, *read_ignore_file(os.path.join(directory, ".gitignore"), directory)]
        config = self._resolver.for_directory(directory)
        patterns, includes = self._patterns_of(config), self._includes_of(config)
        found = []
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not (includes.has(entry.path) and _is_file(entry)):
                continue
            if any(each.has_entry(entry.path, is_directory) for each in patterns):
                continue
            if files and ignored(files, entry.path, is_directory):
                continue
            kind: Kind = "directory" if is_directory else "link" if entry.is_symlink() else "file"
            found.append(_Entry(entry.path, kind, files))
        return found

    def _add(self, path: str, left: str | None = None) -> None:
        if path not in self._seen:
            self._seen.add(path)
            config = self._resolver.for_directory(os.path.dirname(path))
            self._found.targets.append(Target(path, self._name(path), config, left))

    def _name(self, path: str) -> str:
        if path == self._here:
            return "."
        prefix = self._here.rstrip(os.sep) + os.sep
        return path[len(prefix) :] if path.startswith(prefix) else path

    def _patterns_of(self, config: Config) -> list[Patterns]:
        known = self._patterns.get(id(config))
        if known is None:
            base = self._exclude if self._exclude is not None else config.exclude
            base_root = self._here if self._exclude is not None else str(config.root)
            lists = [
                Patterns(base_root, base),
                Patterns(str(config.root), config.extend_exclude),
                Patterns(self._here, self._extend_exclude or ()),
            ]
            known = self._patterns[id(config)] = (config, lists)
        return known[1]

    def _includes_of(self, config: Config) -> Includes:
        known = self._includes.get(id(config))
        if known is None:
            known = self._includes[id(config)] = (config, Includes(config, self._more))
        return known[1]


class Includes:
    """The files of directories that are checked: endings, which are told fast, and other patterns."""

    def __init__(self, config: Config, more: tuple[str, ...]) -> None:
        given = (*config.include, *config.extend_include)
        plain = all(_ENDING.match(pattern) for pattern in given)
        self._endings = (*(pattern[1:] for pattern in given if plain), *more)
        self._patterns = None if plain else Patterns(str(config.root), given)

    def has(self, path: str) -> bool:
        """Whether a file is to be checked."""
        if path.endswith(self._endings):
            return True
        if self._patterns is None:
            return False
        decision = self._patterns.decide(path)
        return path.endswith(SUFFIXES) and self._patterns.has(path) if decision is None else decision


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) or (entry.is_symlink() and is_regular(entry.path))


def _tree(directory: str) -> str:
    """The work tree that holds a directory, else the directory itself."""
    top = directory
    while not os.path.lexists(os.path.join(top, ".git")):
        parent = os.path.dirname(top)
        if parent == top:
            return directory
        top = parent
    return top


def _left_by(path: str, trees: Sequence[str]) -> str | None:
    """The tree that a link leaves; None for what is no link, and for one to a file in one of the trees."""
    if not os.path.islink(path):
        return None
    real = os.path.realpath(path)
    inside = any(real.startswith(os.path.realpath(tree).rstrip(os.sep) + os.sep) for tree in trees)
    return None if inside else trees[-1]


def _why_missing(path: str) -> str:
    return "broken symbolic link" if os.path.islink(path) else "no such file or directory"
