"""The cache: what checking each file found, in one SQLite database in `.devlint_cache`.

An entry stands for a file's content, the settings and the code that checked it. The size, time of change and inode of a
file stand for its content when it had not changed for two seconds at the time it was read: a file system's clock may
not tell two changes within one tick apart.

The database of a repository may come from anybody. Its name, and the checksum of each entry, follow from a secret of the
user's (`devlint.user_key`): one that a repository brings along is not opened. One with other tables than ours, a view
or a trigger is not read. What is damaged is made anew, and what cannot be opened, locked or written is done without.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from devlint.codec import dump, load
from devlint.config import Config
from devlint.embedded import NOTEBOOK
from devlint.errors import SourceError
from devlint.file_state import FileState, content_digest
from devlint.fingerprint import code_stamp, settings_stamp
from devlint.model import FileResult, RuleMeta
from devlint.project_files import ProjectFiles, Search
from devlint.reading import LARGEST_NOTEBOOK, is_regular, read_regular
from devlint.report import FileReport
from devlint.settings import Settings
from devlint.user_key import user_key
from devlint.worker import Outcome, Task

DIRECTORY = ".devlint_cache"
FILE = "devlint-results-{}.sqlite3"
ALL_FILES = "devlint-results*.sqlite3*"  # of all users, and what SQLite writes beside them
MARKERS = {
    # Only what is ours: the directory may hold sources one day, which are to be checked.
    ".gitignore": "# Made by devlint.\n/.gitignore\n/CACHEDIR.TAG\n/devlint-results*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# A cache of devlint, which can be deleted at any time. See https://bford.info/cachedir/\n",
}

PRUNE_EVERY = 3_600_000_000_000
KEEP_UNUSED = 14 * 86_400_000_000_000  # results for settings and versions that no run has asked for
ONE_BY_ONE = 200  # up to this number of files each is asked for by itself

_OURS = 0x6465766C  # the application id of the database, "devl"
_LAYOUT = 6
_TABLES = (
    "CREATE TABLE files (path TEXT, settings BLOB, size INTEGER, mtime INTEGER, inode INTEGER,"
    " content TEXT, stored INTEGER, result BLOB, checksum BLOB, PRIMARY KEY (path, settings)) WITHOUT ROWID",
    "CREATE TABLE used (settings BLOB PRIMARY KEY, time INTEGER) WITHOUT ROWID",
    "CREATE TABLE rules (code BLOB PRIMARY KEY, metas BLOB, checksum BLOB) WITHOUT ROWID",
)
_SELECT = "SELECT path, size, mtime, inode, content, stored, result, checksum FROM files WHERE settings = ?"

#: How often SQLite may stop to ask in one statement, and after how many of its steps each. A table with a circle in it
#: would be read for ever.
_ASKED, _STEPS = 1_000, 100_000
#: What says that a database cannot be had now. All other errors say that it is damaged.
_UNUSABLE = re.compile(r"locked|busy|readonly|read-only|full|unable to open|disk I/O|not permitted|denied")
_DAMAGE = (sqlite3.Error, TypeError, ValueError, OverflowError, MemoryError)

Run = Callable[[Sequence[Task]], Iterable[Outcome]]
Row = tuple[Any, ...]


class Cache:
    """The cache of one run in `directory`. Paths below `root` are kept relative to it. No method raises."""

    def __init__(self, directory: Path, root: Path) -> None:
        self._directory = directory
        self._root = str(root)
        self._database: sqlite3.Connection | None = None
        key = user_key(self._root)
        self._key_of_user = key or b""
        self._usable = key is not None
        self._name = FILE.format(_digest(self._key_of_user, "name").hex())
        self._asked = 0
        self._codes: dict[tuple[str, ...], bytes] = {}
        self._stamps: dict[int, tuple[Settings, bytes]] = {}  # by identity: many tasks share their settings
        self._new: list[Row] = []
        self._files = ProjectFiles()
        self._ways: dict[tuple[str, str], str] = {}  # from a directory to another one
        self._states: dict[tuple[str, str], bool] = {}  # by path and state: whether the file is in it
        self._others: dict[str, dict[str, bool]] = {}  # by directory and line: whether that file is as it was

    def metas(self, plugins: tuple[str, ...]) -> tuple[RuleMeta, ...] | None:
        """The metadata of the rules as an earlier run saw it; None when the code has changed since."""
        code = self._code(plugins)
        for data, checksum in self._rows("SELECT metas, checksum FROM rules WHERE code = ?", (code,)):
            if checksum == self._checksum(code, data):
                with suppress(ValueError):
                    return tuple(load(list[RuleMeta], data, ""))
        return None

    def keep_metas(self, plugins: tuple[str, ...], metas: tuple[RuleMeta, ...]) -> None:
        code, data = self._code(plugins), dump(metas, "")
        row = (code, data, self._checksum(code, data))
        self._write(lambda database: database.execute("INSERT OR REPLACE INTO rules VALUES (?, ?, ?)", row))

    def outcomes(self, tasks: Sequence[Task], run: Run) -> Iterator[Outcome]:
        """The outcome of each task in order: what is known at once, the others by `run`, whose results are kept."""
        known = self._known(tasks)
        self._shut()  # a worker process must not inherit it
        fresh = iter(run([task for index, task in enumerate(tasks) if index not in known]))
        try:
            for index, task in enumerate(tasks):
                outcome = known.pop(index, None)
                if outcome is None:
                    outcome = next(fresh)
                    self._keep(task, outcome)
                yield outcome
        finally:
            self.close()

    def close(self) -> None:
        """Write what is new and close the database."""
        if self._new:
            rows, self._new = self._new, []
            self._write(lambda database: self._store(database, rows))
        self._shut()

    def _store(self, database: sqlite3.Connection, rows: list[Row]) -> None:
        stamps = {row[1] for row in rows}
        now = time.time_ns()
        (last,) = database.execute("SELECT MIN(time) FROM used").fetchone()
        database.executemany("INSERT OR IGNORE INTO used VALUES (?, ?)", [(stamp, now) for stamp in stamps])
        database.executemany(f"INSERT OR REPLACE INTO files VALUES ({', '.join('?' * 9)})", rows)
        if last is not None and now - last >= PRUNE_EVERY:
            self._prune(database, stamps, now)

    def _prune(self, database: sqlite3.Connection, stamps: set[bytes], now: int) -> None:
        """Drop the entries of files that are gone and of settings and versions that have not been used for long."""
        database.executemany("UPDATE used SET time = ? WHERE settings = ?", [(now, stamp) for stamp in stamps])
        database.execute("DELETE FROM used WHERE time < ?", (now - KEEP_UNUSED,))
        database.execute("DELETE FROM files WHERE settings NOT IN (SELECT settings FROM used)")
        paths = [row[0] for row in database.execute("SELECT DISTINCT path FROM files")]
        gone = [(path,) for path in paths if not os.path.exists(os.path.join(self._root, path))]
        database.executemany("DELETE FROM files WHERE path = ?", gone)

    def _known(self, tasks: Sequence[Task]) -> dict[int, Outcome]:
        """The outcomes that the database holds, by the index of their task."""
        entries = self._entries(tasks)
        known = {}
        for index, task in enumerate(tasks):
            row = entries.get((self._key(task.path), self._stamp(task)))
            if row is not None:
                outcome = self._outcome(task, row)
                if outcome is not None:
                    known[index] = outcome
        return known

    def _entries(self, tasks: Sequence[Task]) -> dict[tuple[str, bytes], Row]:
        """The rows of the files of tasks that can be answered at all."""
        asked: dict[bytes, list[str]] = {}
        for task in tasks:
            if task.raw is None:
                asked.setdefault(self._stamp(task), []).append(self._key(task.path))
        found: dict[tuple[str, bytes], Row] = {}
        for stamp, paths in asked.items():
            if len(paths) > ONE_BY_ONE:
                rows = self._rows(_SELECT, (stamp,))
            else:
                rows = [row for path in paths for row in self._rows(_SELECT + " AND path = ?", (stamp, path))]
            found.update(((row[0], stamp), row) for row in rows)
        return found

    def _outcome(self, task: Task, row: Row) -> Outcome | None:
        """What the row says about the file as it is now; None when it says nothing or fixes are to be applied."""
        path, size, mtime, inode, content, stored, data, checksum = row
        stamp = self._stamp(task)
        if checksum != self._checksum(path, stamp, size, mtime, inode, content, stored, data):
            return None
        before, now = FileState(size, mtime, inode, stored, content), FileState.of(task.path)
        if now.size != size:
            return None
        raw = None
        if not (now.same_metadata(before) and before.settled):
            raw = _read(task.path, content)
            if raw is None:
                return None
            self._add(task, now._replace(content=content), data)
        try:
            result: FileResult = load(FileResult, data, task.name)
            if result.others and not self._others_hold(task, result):
                return None
        except ValueError:
            return None
        if result.searched is not None:
            search = self._search_now(task, result.searched)
            if search is None:
                return None
            if search is not result.searched:
                result.searched = search
                self._add(task, before, dump(result, task.name))
        report = FileReport(result, None, (), task.applied)
        if task.fix and any(report.is_fixable(each) for each in result.diagnostics):
            return None
        if task.keep_text and result.diagnostics:
            raw = _read(task.path, content) if raw is None else raw
            if raw is None:
                return None
            if task.name.endswith(NOTEBOOK):
                report = replace(report, cells=_cells(raw, task.name))
            else:
                report = replace(report, text=_text(raw, task.name))
        return Outcome(report)

    def _others_hold(self, task: Task, result: FileResult) -> bool:
        """Whether the other files that a result follows from are as they were, and named as from the current directory."""
        folder, _ = os.path.split(task.path)
        known = self._others.setdefault(folder, {})
        for line in result.others:
            holds = known.get(line)
            if holds is None:
                holds = known[line] = self._holds(folder, line)
            if not holds:
                return False
        shown = {each.path for d in (*result.diagnostics, *result.suppressed) for each in d.related} - {task.name}
        if not shown:
            return True
        others = {os.path.abspath(os.path.join(folder, FileState.of_line(line)[0])) for line in result.others}
        return all(os.path.abspath(path) in others for path in shown)

    def _holds(self, folder: str, line: str) -> bool:
        """Whether a file is as it was; looked at once for each of its states, whichever directory a line is from.

        Raises ValueError for what is no line of a state.
        """
        path = line.split(" ", 5)[-1]
        way, _, name = path.rpartition(os.sep)
        above = self._ways.get((folder, way))
        if above is None:
            above = self._ways[folder, way] = os.path.normpath(os.path.join(folder, way or os.curdir))
        key = (path if path[:1] == os.sep else above + os.sep + name, line[: -len(path)])
        holds = self._states.get(key)
        if holds is None:
            holds = self._states[key] = FileState.of_line(line)[1].holds(key[0])
        return holds

    def _search_now(self, task: Task, search: Search) -> Search | None:
        """A search in the files of the project as it would be now, when it finds what it found; else None."""
        folder, _ = os.path.split(task.path)
        files = self._files.around(folder)
        if files is None or os.path.normpath(os.path.join(folder, search.root)) != files.root:
            return None
        if files.listing == search.listing:
            return search
        if any(files.mentioning(word) != paths for word, paths in search.words.items()):
            return None
        return search._replace(listing=files.listing)

    def _keep(self, task: Task, outcome: Outcome) -> None:
        """Remember an outcome that follows from the file's content alone."""
        if outcome.seen is None or outcome.errors or outcome.warnings or outcome.after is not None:
            return
        with suppress(TypeError):
            self._add(task, outcome.seen, dump(outcome.report.result, task.name))

    def _add(self, task: Task, seen: FileState, data: bytes) -> None:
        row = (
            self._key(task.path),
            self._stamp(task),
            seen.size,
            seen.mtime,
            seen.inode,
            seen.content,
            seen.when,
            data,
        )
        self._new.append((*row, self._checksum(*row)))

    def _checksum(self, *parts: object) -> bytes:
        return _digest(self._key_of_user, repr(parts))

    def _key(self, path: str) -> str:
        prefix = self._root.rstrip(os.sep) + os.sep
        return path[len(prefix) :] if path.startswith(prefix) else path

    def _code(self, plugins: tuple[str, ...]) -> bytes:
        if plugins not in self._codes:
            self._codes[plugins] = code_stamp(plugins)
        return self._codes[plugins]

    def _stamp(self, task: Task) -> bytes:
        known = self._stamps.get(id(task.settings))
        if known is None:
            stamp = settings_stamp(self._code(task.plugins), task.settings)
            known = self._stamps[id(task.settings)] = (task.settings, stamp)
        return known[1]

    # The database

    def _rows(self, query: str, values: tuple[object, ...]) -> list[Row]:
        database = self._open()
        if database is None:
            return []
        try:
            return database.execute(query, values).fetchall()
        except _DAMAGE as error:
            if not _is_unusable(error):
                self._make_anew()
            return []

    def _write(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Make a change in one transaction, or none at all."""
        database = self._open()
        if database is None:
            return
        try:
            database.execute("BEGIN IMMEDIATE")
            change(database)
            database.execute("COMMIT")
        except _DAMAGE as error:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            if not _is_unusable(error):
                self._make_anew()

    def _open(self) -> sqlite3.Connection | None:
        self._asked = 0
        if self._database is None and self._usable:
            self._database = self._connect(may_replace=True)
            self._usable = self._database is not None
        return self._database

    def _shut(self) -> None:
        _close(self._database)
        self._database = None

    def _connect(self, may_replace: bool) -> sqlite3.Connection | None:
        database = None
        try:
            make_directory(self._directory)
            path = self._directory / self._name
            if any(os.path.lexists(each) and not is_regular(each) for each in self._paths()):
                return None
            database = sqlite3.connect(path, timeout=10, isolation_level=None)
            database.set_progress_handler(self._is_too_long, _STEPS)
            for pragma in ("synchronous = OFF", "trusted_schema = OFF", "cell_size_check = ON"):
                database.execute(f"PRAGMA {pragma}")
            if database.execute("PRAGMA application_id").fetchone() != (_OURS,):
                if database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() != (0,):
                    raise sqlite3.DatabaseError("not a cache of devlint")
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("BEGIN IMMEDIATE")
                for statement in (*_TABLES, f"PRAGMA application_id = {_OURS}", f"PRAGMA user_version = {_LAYOUT}"):
                    database.execute(statement)
                database.execute("COMMIT")
            elif database.execute("PRAGMA user_version").fetchone() != (_LAYOUT,):
                raise sqlite3.DatabaseError("another layout")
            if sorted(database.execute("SELECT type, sql FROM sqlite_master")) != [
                ("table", each) for each in sorted(_TABLES)
            ]:
                raise sqlite3.DatabaseError("other tables, a view or a trigger")
            return database
        except (OSError, *_DAMAGE) as error:
            _close(database)
            if isinstance(error, OSError) or _is_unusable(error) or not may_replace:
                return None
            return self._connect(may_replace=False) if self._remove() else None

    def _is_too_long(self) -> bool:
        self._asked += 1
        return self._asked > _ASKED

    def _make_anew(self) -> None:
        self._shut()
        if self._remove():
            self._database = self._connect(may_replace=False)
        self._usable = self._database is not None

    def _paths(self) -> list[Path]:
        """The database, after what SQLite writes beside it."""
        return [self._directory / (self._name + ending) for ending in ("-wal", "-shm", "-journal", "")]

    def _remove(self) -> bool:
        """Delete the database; whether it is gone."""
        try:
            for path in self._paths():
                path.unlink(missing_ok=True)
        except (OSError, ValueError):  # ValueError: a NUL in the path
            return False
        return True


def place(given: str | None, config: Config) -> Path:
    """The directory of the cache: that of `--cache-dir`, from the current directory, or that of the settings."""
    if given is not None:
        return Path(os.path.abspath(given))
    root = config.root if config.path is not None else Path.cwd()
    return root / os.path.expanduser(config.cache_dir)


def make_directory(directory: Path) -> None:
    """Make the directory of a cache with the files that keep it out of git and of backups. Raises OSError.

    A directory that holds something already is somebody's, of sources perhaps: nothing is said of it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with os.scandir(directory) as entries:
        if next(entries, None) is not None:
            return
    for name, text in MARKERS.items():
        with suppress(FileExistsError), open(directory / name, "x", encoding="utf-8") as file:
            file.write(text)


def remove(directory: Path) -> bool:
    """Delete a cache: the files that devlint made, and the directory when nothing else is in it. Raises OSError.

    Whether there was one.
    """
    found = [path for path in directory.glob(ALL_FILES) if not path.is_dir()]
    found += [directory / name for name, text in MARKERS.items() if _holds(directory / name, text)]
    for path in found:
        path.unlink(missing_ok=True)
    with suppress(OSError):
        directory.rmdir()
    return bool(found)


def _holds(path: Path, text: str) -> bool:
    try:
        return read_regular(path, len(text.encode())) == text.encode()
    except OSError:
        return False


def _is_unusable(error: BaseException) -> bool:
    """Whether a database cannot be had now: locked for long, read-only, no space. Else it is damaged."""
    return isinstance(error, sqlite3.OperationalError) and _UNUSABLE.search(str(error)) is not None


def _digest(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), key=key, digest_size=16).digest()


def _close(database: sqlite3.Connection | None) -> None:
    if database is not None:
        with suppress(sqlite3.Error):
            database.close()


def _read(path: str, content: str) -> bytes | None:
    """The bytes of a file whose content has this digest; None when it has another one."""
    try:
        raw = read_regular(path, LARGEST_NOTEBOOK)
    except OSError:
        return None
    return raw if content_digest(raw) == content else None


def _cells(raw: bytes, name: str) -> dict[int, str]:
    from devlint.embedded.notebook import read_notebook

    try:
        return {cell.number: cell.text for cell in read_notebook(raw, name).cells}
    except SourceError:
        return {}


def _text(raw: bytes, name: str) -> str | None:
    from devlint.source import decode

    try:
        return decode(raw, name).text
    except SourceError:
        return None
