"""Which rows changed since a git revision, for `--diff-base`: of files that git does not track, all.

The repository's own configuration may name programs: a monitor of its files, filters that a file goes through before it is
compared. None of them is started.
"""

from __future__ import annotations

import os
import re
import subprocess

from devlint.errors import UsageError
from devlint.scope import Rows

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
# What a user's configuration might set otherwise.
_DIFF = (
    "diff", "-U0", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--src-prefix=a/",
    "--dst-prefix=b/", "--inter-hunk-context=0", "--ignore-submodules=all", "--diff-filter=d", "--text",
)  # fmt: skip


class Changes:
    """The rows of the repository of `directory` that the working tree has and the revision has not.

    `REV...` stands for the last common commit of REV and HEAD. Raises UsageError outside a repository, for an unknown
    revision, and when git fails.
    """

    def __init__(self, revision: str, directory: str) -> None:
        self._directory = directory
        self._options = ["-c", "core.fsmonitor=false"]
        self._options += self._without_filters()
        self._root = os.path.realpath(os.fsdecode(self._git("rev-parse", "--show-toplevel").rstrip(b"\r\n")))
        self._directory = self._root
        commit = self._commit(revision)
        self._changed = parse_diff(self._git("-c", "core.quotePath=false", *_DIFF, commit, "--"))
        self._tracked = set(self._git("ls-files", "-z").split(b"\0"))

    def rows(self, path: str) -> Rows | None:
        """The changed rows of a file; None when all of it is new."""
        real = os.path.realpath(path)
        prefix = self._root.rstrip(os.sep) + os.sep
        if not real.startswith(prefix):
            return None
        name = os.fsencode(real[len(prefix) :].replace(os.sep, "/"))
        return None if name not in self._tracked else self._changed.get(name, ())

    def elsewhere(self) -> dict[str, Rows | None]:
        """The changed rows of every changed Python file, by its real path; None where all of it is new."""
        found: dict[str, Rows | None] = {}
        new = self._git("ls-files", "-z", "--others", "--exclude-standard", "--", "*.py", "*.pyi", "*.ipynb")
        for name in filter(None, new.split(b"\0")):
            found[self._path(name)] = None
        for name, rows in self._changed.items():
            found[self._path(name)] = rows
        return found

    def _path(self, name: bytes) -> str:
        return os.path.join(self._root, os.fsdecode(name).replace("/", os.sep))

    def _commit(self, revision: str) -> str:
        name, dots, rest = revision.partition("...")
        if not name or name.startswith("-") or rest:
            raise UsageError(f"--diff-base: not a revision: `{revision}`")
        try:
            commit = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except UsageError:
            raise UsageError(f"--diff-base: git knows no revision `{name}`") from None
        if dots:
            try:
                commit = self._git("merge-base", os.fsdecode(commit.strip()), "HEAD")
            except UsageError:
                raise UsageError(f"--diff-base: `{name}` and HEAD have no commit in common") from None
        return os.fsdecode(commit.strip())

    def _without_filters(self) -> list[str]:
        """The options that switch off the filters which some configuration names."""
        try:
            named = self._git(
                "config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$"
            )
        except UsageError:  # there are none
            return []
        found = []
        for name in map(os.fsdecode, filter(None, named.split(b"\0"))):
            found += ["-c", f"{name}=", "-c", f"{name.rpartition('.')[0]}.required=false"]
        return found

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "-C", self._directory, *self._options, *arguments]
        environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
        try:
            done = subprocess.run(command, capture_output=True, check=False, env=environment)
        except OSError as error:
            raise UsageError(f"--diff-base: cannot run git: {error.strerror or error}") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()
            if "not a git repository" in said:
                raise UsageError(f"--diff-base: {self._directory} is not in a git repository")
            raise UsageError(f"--diff-base: git {arguments[0]} failed: {said}")
        return done.stdout


def parse_diff(diff: bytes) -> dict[bytes, Rows]:
    """The rows that each file gained, by path, from a diff without context."""
    changed: dict[bytes, list[tuple[int, int]]] = {}
    rows: list[tuple[int, int]] = []
    to_skip = 0  # rows of a hunk, which may look like headers
    for line in diff.split(b"\n"):
        if to_skip:
            to_skip -= not line.startswith(b"\\")
            continue
        if line.startswith(b"+++ "):
            rows = changed.setdefault(_path(line[4:]), [])
            continue
        hunk = _HUNK.match(line)
        if hunk is not None:
            removed, start, added = (int(each) if each is not None else 1 for each in hunk.groups())
            to_skip = removed + added
            if added:
                rows.append((start, start + added - 1))
    return {path: tuple(found) for path, found in changed.items()}


def _path(written: bytes) -> bytes:
    """The path in a header, without `b/`, the tab behind a name with blanks, and quotes."""
    written = written.rstrip(b"\r\t")
    if written.startswith(b'"'):
        written = _ESCAPE.sub(_unescaped, written[1:-1])
    return written[2:]


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPED.get(code, code)
