"""A baseline: the findings that a project lives with for now, so that only others are reported.

A finding is known by its rule, the path of its file, the definitions around it, its statement and, for equal ones,
their number; rows do not matter. The file is JSON, sorted, one line for each kind of finding, so that git merges it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from devlint.errors import UsageError
from devlint.identity import Key
from devlint.model import ENGINE_RULES, Diagnostic
from devlint.reading import LARGEST_NOTEBOOK, read_regular

_VERSION = 1
_NEVER = frozenset(meta.code for meta in ENGINE_RULES)

Counts = dict[str, int]  # by rule and context, `DEV101 Model.forward:8f0c...`


class Baseline:
    """The entries of one file, by path relative to its directory. `known` asks, `record` changes, `write` saves."""

    def __init__(self, path: Path, files: dict[str, Counts] | None = None) -> None:
        self.path = path
        self._root = os.path.realpath(path.parent)
        self._files = files if files is not None else {}
        self._stale: dict[str, Counts] = {}

    def known(self, name: str) -> frozenset[Key]:
        """The findings of a file that are in the baseline."""
        return frozenset(
            Key(code, context, ordinal)
            for entry, number in self._files.get(self._relative(name), {}).items()
            for code, _, context in (entry.partition(" "),)
            for ordinal in range(number)
        )

    def compare(self, name: str, found: Iterable[Diagnostic], on: Collection[str]) -> None:
        """Note the entries of a file that none of its findings match. `on`: the codes of the rules that looked."""
        path = self._relative(name)
        counts = _counts(found)
        stale = {
            entry: number - counts.get(entry, 0)
            for entry, number in self._files.get(path, {}).items()
            if entry.split(" ", 1)[0] in on and counts.get(entry, 0) < number
        }
        if stale:
            self._stale[path] = stale

    def compare_missing(self) -> None:
        """Note the entries of files that are gone."""
        for path, counts in self._files.items():
            if not os.path.exists(os.path.join(self._root, path)):
                self._stale[path] = dict(counts)

    @property
    def stale(self) -> int:
        """How many entries match no finding any more."""
        return sum(number for counts in self._stale.values() for number in counts.values())

    def prune(self) -> None:
        """Drop the entries that match no finding."""
        for path, stale in self._stale.items():
            left = {entry: number - stale.get(entry, 0) for entry, number in self._files[path].items()}
            self._set(path, {entry: number for entry, number in left.items() if number > 0})
        self._stale = {}

    def record(self, name: str, found: Iterable[Diagnostic], on: Collection[str]) -> int:
        """Make the findings of a file its entries; those of rules that did not look stay. The number of findings."""
        path = self._relative(name)
        counts = _counts(found)
        kept = {entry: n for entry, n in self._files.get(path, {}).items() if entry.split(" ", 1)[0] not in on}
        self._set(path, {**kept, **counts})
        return sum(counts.values())

    def write(self) -> None:
        """Save. Raises UsageError naming the file when it cannot be written."""
        files = {path: dict(sorted(counts.items())) for path, counts in sorted(self._files.items())}
        text = json.dumps({"version": _VERSION, "findings": files}, indent=2, ensure_ascii=False) + "\n"
        from devlint.report.output import write_text

        write_text(self.path, text)

    def _set(self, path: str, counts: Counts) -> None:
        if counts:
            self._files[path] = counts
        else:
            self._files.pop(path, None)

    def _relative(self, name: str) -> str:
        path = os.path.abspath(name)
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        try:
            path = os.path.relpath(path, self._root)
        except ValueError:  # on another drive
            return path.replace(os.sep, "/")
        return path.replace(os.sep, "/")


def _counts(found: Iterable[Diagnostic]) -> Counts:
    counts: Counts = {}
    for diagnostic in found:
        if diagnostic.code not in _NEVER:
            entry = f"{diagnostic.code} {diagnostic.context}"
            counts[entry] = counts.get(entry, 0) + 1
    return counts


def load(path: Path) -> Baseline:
    """Read a baseline. Raises UsageError naming the file when it cannot be read or is none."""
    try:
        data: Any = json.loads(read_regular(path, LARGEST_NOTEBOOK))
    except OSError as error:
        raise UsageError(f"{path}: cannot read the baseline: {error.strerror or error}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: not a baseline: nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"{path}: not a baseline: {error}") from error
    if not isinstance(data, dict) or data.get("version") != _VERSION or not _is_table(data.get("findings")):
        raise UsageError(f"{path}: not a baseline of this version of devlint; write it anew with --write-baseline")
    return Baseline(path, data["findings"])


def _is_table(data: Any) -> bool:
    return isinstance(data, dict) and all(
        isinstance(counts, dict)
        and all(" " in entry and isinstance(number, int) and number > 0 for entry, number in counts.items())
        for counts in data.values()
    )
